import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/dist", "gen", "**/node_modules"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      // With noUncheckedIndexedAccess an index that is known to exist needs one.
      "@typescript-eslint/no-non-null-assertion": "off",
      // It takes a cast that says what a row holds for a missing type argument.
      "@typescript-eslint/no-unnecessary-type-assertion": "off",
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "no-restricted-properties": [
        "error",
        {
          object: "process",
          property: "env",
          message: "src/config/variables.ts is the only reader of the environment.",
        },
      ],
      "no-restricted-syntax": [
        "error",
        ...[
          "MemberExpression > Identifier.property[name=/^_/]",
          "MemberExpression > Literal.property[value=/^_/]",
          "ClassBody > * > Identifier.key[name=/^_/]",
        ].map((selector) => ({
          selector,
          message: "What begins with an underscore is private to its library, and changes without notice.",
        })),
      ],
    },
  },
  { files: ["src/config/variables.ts"], rules: { "no-restricted-properties": "off" } },
  {
    files: ["test/**", "bench/**", "campaign/**"],
    rules: {
      "no-restricted-properties": "off",
      // Titles of AVA macros see their arguments as unknown.
      "@typescript-eslint/restrict-template-expressions": "off",
      "@typescript-eslint/no-base-to-string": "off",
      "@typescript-eslint/no-meaningless-void-operator": "off",
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/await-thenable": "off",
    },
  },
);
