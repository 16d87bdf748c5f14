/**
 * The rooms and which way they may see each other: main → node → services → feature → db; the protocol machinery (rpc)
 * and the edge know no feature; features know neither each other nor any protocol library.
 */
const features = "health|info|storage|zk|attestation|chain|peers|control|metrics";
const protocolLibraries = "@grpc/|@connectrpc/|express|json-rpc-2\\.0";

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "features-apart",
      comment: "A feature takes what it needs of another as a function or a small interface, from node.ts.",
      severity: "error",
      from: { path: `^src/(${features})/` },
      to: { path: `^src/(${features})/`, pathNot: "^src/$1/" },
    },
    {
      name: "features-know-no-protocol",
      comment: "Peers call other nodes, so src/peers/client.ts alone speaks gRPC.",
      severity: "error",
      from: { path: `^src/(${features})/`, pathNot: "^src/peers/client\\.ts$" },
      to: { path: `node_modules/(${protocolLibraries})` },
    },
    {
      name: "features-see-only-types-of-rpc",
      comment: "src/rpc/service.ts says what an implementation is; the rest of rpc is machinery.",
      severity: "error",
      from: { path: `^src/(${features})/`, pathNot: "^src/peers/client\\.ts$" },
      to: { path: "^src/(rpc|edge)/", pathNot: "^src/rpc/service\\.ts$" },
    },
    {
      name: "machinery-knows-no-feature",
      severity: "error",
      from: { path: "^src/(rpc|edge|db)/" },
      to: { path: `^src/(${features}|cli)/|^src/(main|node|services|config)\\.ts$` },
    },
    {
      name: "nobody-reaches-up",
      severity: "error",
      from: { path: `^src/(${features}|services\\.ts|errors\\.ts|config\\.ts)` },
      to: { path: "^src/(cli/|main\\.ts|node\\.ts)" },
    },
    {
      name: "only-connect-opens-a-database",
      comment: "sqlite3 is archived upstream: one file stands between it and everything else.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/db/connect\\.ts$" },
      to: { path: "node_modules/sqlite3" },
    },
    {
      name: "shipped-code-needs-shipped-packages",
      severity: "error",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown", "unknown"] },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      extensions: [".ts", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default"],
    },
  },
};
