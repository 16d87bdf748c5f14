import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "gen", "node_modules"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "no-restricted-properties": [
        "error",
        { object: "process", property: "env", message: "config.ts is the only reader of the environment." },
      ],
    },
  },
  { files: ["src/config.ts", "test/**", "bench/**"], rules: { "no-restricted-properties": "off" } },
);
