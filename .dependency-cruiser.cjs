/**
 * Import rules of src/, as a list of what is allowed. An import that no entry allows is rejected.
 * docs/internals/architecture.md lists the modules; test/architecture adds imports that must be rejected.
 *
 *   main → cli → node → features → rpc, db, tree, base        node → express → transcoding → rpc
 *   cli → light → rpc                                         cli, light → client → some files of tree, storage, base
 *
 * The client is a package of its own (client/), also for browsers. Of src/ it may import what defines signed bytes,
 * proofs and documents, in files that do not need Node.js. The command line may import of it what signs and what checks
 * proofs, but nothing that calls nodes.
 *
 * Inside cli/, the files that find and run commands may import the folders of commands, and these what all share: flags,
 * calls to nodes, the terminal. Inside rpc/ the order is: files that all protocols share, codecs and exchange, http,
 * json-rpc, describe, the other protocols, and server, which combines them.
 */

const features = "attestation|chain|control|event|health|info|metrics|peers|search|snapshot|state|storage|zk";

/** Allowed everywhere: a folder's own files, src/base, generated code, and Node.js itself. */
const everywhere = [
  { from: { path: "^src/(.+)/[^/]+$" }, to: { path: "^src/$1/[^/]+$" } },
  { from: { path: "^src/(?!base/)" }, to: { path: "^src/base/" } },
  { from: { path: "^(client/)?src/" }, to: { path: "^gen/" } },
  { from: { path: "^src/" }, to: { dependencyTypes: ["core"] } },
];

/** Allows imports from a path of src/ to other paths: folders, or single files. */
const allow = (from, ...to) => ({ from: { path: `^src/${from}` }, to: { path: `^src/(${to.join("|")})` } });
const modules = [
  allow("main\\.ts$", "cli/"),
  // Exports of the package: a node inside another application, and plain routes for other services.
  allow("embedding/", "node/", "config/", "health/process-errors\\.ts$", "rpc/connect/routes\\.ts$"),
  allow("transcoding/", "rpc/", "edge/unrestricted-gate\\.ts$"),
  // The Express application of a node: protocols, but no part of the node.
  allow("express/", "rpc/", "transcoding/router\\.ts$"),
  allow("node/", "express/application\\.ts$"),
  allow("cli/", "node/", "light/", "config/", `(${features})/`, "rpc/errors\\.ts$"),
  allow("node/", "config/", `(${features})/`, "edge/", "workers/", "rpc/", "tree/"),
  // All of db but the engines.
  allow("node/", "db/[^/]+$", "db/(queries|rows)/"),
  allow("(snapshot|state|storage|zk|chain)/", "tree/"),
  // The interface of an implementation, its errors, and the forms of parameters.
  allow(`(${features})/`, "rpc/(service|errors|parameters)\\.ts$"),
  // Only stores contain queries.
  allow(
    "(chain|peers|snapshot|state|storage|tree|zk)/.+-store\\.ts$",
    "db/queries/(database|dialects)\\.ts$",
    "db/rows/(batch|bulk-changes|chunks|write-buffer|write-probe)\\.ts$",
  ),
  // Checksums of rows, which depend on no engine.
  allow("(chain|state|storage|tree|zk)/", "db/rows/row-hashes\\.ts$"),
  // Reads with proofs, and serves the results: protocols, and of the features only the hash of the commitment tree.
  allow("light/", "rpc/", "edge/(min-block|unrestricted-gate)\\.ts$", "zk/poseidon\\.ts$"),
  // Calls other nodes over any transport.
  allow("peers/", "rpc/channel\\.ts$"),
  // Workers serve for a node and import no part of it.
  allow("workers/", "rpc/(service|errors|port/listen)\\.ts$", "edge/edge\\.ts$"),
  // Implements the gate of rpc.
  allow("edge/", "rpc/(service|errors|gate)\\.ts$"),
];
const client = [
  { from: { path: "^client/src/" }, to: { path: "^client/src/" } },
  { from: { path: "^client/src/" }, to: { path: "^src/base/crypto/signing-payloads\\.ts$" } },
  // Proof checks, the parts of a document, and the texts of rejected reads.
  { from: { path: "^client/src/" }, to: { path: "^src/tree/(hashes|nodes|path|state-format)\\.ts$" } },
  {
    from: { path: "^client/src/" },
    to: { path: "^src/storage/(documents/(document|document-parts|json-text)|programs/rejections)\\.ts$" },
  },
  {
    from: { path: "^client/src/" },
    to: {
      path: "^src/base/(crypto/parse-hash|errors/certificate-error|latest-block|text/(integers|parse-json|show-text))\\.ts$",
    },
  },
  { from: { path: "^client/src/" }, to: { path: "^src/chain/blocks/block-rejections\\.ts$" } },
  {
    from: { path: "^client/src/" },
    to: { path: "^node_modules/(@bufbuild/protobuf|@connectrpc/connect(-web)?|@noble/(ed25519|hashes))/" },
  },
  {
    from: { path: "^src/cli/" },
    to: { path: "^client/src/(transaction|identity|operations|gatehouse-error|proof/[^/]+)\\.ts$" },
  },
  {
    from: { path: "^src/light/" },
    to: { path: "^client/src/(errors|gatehouse-error|response-limits|proof/[^/]+)\\.ts$" },
  },
];
/**
 * The explorer runs in browsers: of the client it may import what signs and checks proofs, of src/ the parts of a document
 * and the descriptions of operations. The scripts of /docs and /status take the header and helpers from the explorer.
 */
const explorer = [
  {
    from: { path: "^src/pages/docs/" },
    to: { path: "^src/pages/(docs/|explore/(copy|dom|http|node|shell/shell-page)\\.ts$)" },
  },
  {
    from: { path: "^src/pages/status/" },
    to: { path: "^src/pages/(status/|explore/(copy|dom|format|routes|shell/shell-page)\\.ts$)" },
  },
  { from: { path: "^src/pages/explore/" }, to: { path: "^src/pages/explore/" } },
  {
    from: { path: "^src/pages/(docs|explore)/" },
    to: {
      path: "^client/src/(bytes|identity|keys|operations|signer|transaction|proof/(check|hashing|headers|json|network|proof-error))\\.ts$",
    },
  },
  {
    from: { path: "^src/pages/explore/" },
    to: {
      path: "^src/(base/(describe-operation|crypto/signing-payloads|text/parse-json)|storage/documents/(document|document-parts|json-text))\\.ts$",
    },
  },
  {
    from: { path: "^src/pages/explore/" },
    to: { path: "^node_modules/(@bufbuild/protobuf|poseidon-lite|uplot)/" },
  },
];
/** Directions between the folders of one module, from the first of each row to the others. */
const within = (module, directions) =>
  Object.entries(directions).map(([folder, others]) =>
    allow(`${module}/${folder === "." ? "[^/]+$" : `${folder}/`}`, `${module}/(${others})/`),
  );
const folders = [
  ...within("base", {
    ".": "crypto",
    async: "errors",
    crypto: "caches|errors|files",
    limits: "caches",
    logging: "async|errors|limits",
  }),
  ...within("db", {
    ".": "postgresql|queries|sqlite",
    "(postgresql|rows|sqlite)": "queries",
  }),
  ...within("chain", {
    ".": "blocks|mempool|transactions|writer",
    writer: "blocks|mempool|transactions",
    mempool: "blocks|transactions",
    blocks: "transactions",
  }),
  ...within("storage", {
    ".": "documents|programs",
    changes: "documents|programs|stores",
    stores: "documents|programs",
    programs: "documents",
  }),
  ...within("peers", { ".": "address-book|handshake|relay", "(handshake|relay|sync)": "address-book" }),
  ...within("node", {
    ".": "chain|data|lifecycle|network|serving",
    serving: "chain|data|lifecycle|network",
    network: "chain|lifecycle",
    data: "chain|lifecycle|migrations",
    chain: "lifecycle|migrations",
  }),
  allow("node/data/[^/]+$", "node/data/copies/"),
];
const commandLine = [
  // Files that find and run commands, and commands without a folder of their own.
  allow("cli/[^/]+$", "cli/"),
  allow("cli/calls/", "cli/usage/"),
  allow("cli/(data|doctor|nodes|transactions)/", "cli/(calls|terminal|usage)/"),
  // The sample data of a devnet are transactions.
  allow("cli/nodes/", "cli/transactions/"),
];
const protocols = [
  allow("rpc/(codec|exchange|http|json-rpc|describe|mcp|grpc|connect|port|server)/", "rpc/[^/]+$"),
  allow("rpc/(http|json-rpc|describe|mcp|grpc|connect)/", "rpc/codec/"),
  allow("rpc/(http|json-rpc|mcp|grpc|connect|port|server)/", "rpc/exchange/"),
  allow("rpc/(json-rpc|describe|mcp|connect|server)/", "rpc/http/"),
  allow("rpc/(node-call|describe|mcp|server)/", "rpc/json-rpc/"),
  // Identifies errors that end a list.
  allow("rpc/node-call/", "rpc/(errors|parameters)\\.ts$"),
  allow("rpc/(mcp|server)/", "rpc/describe/"),
  allow("rpc/(mcp|grpc|server)/", "rpc/port/"),
  allow("rpc/server/", "rpc/(connect|grpc|mcp)/"),
];

/** Packages that only some modules may import. All modules may import the others. */
const restricted = {
  "@grpc/": "rpc/grpc/",
  "@connectrpc/": "(rpc/connect/|cli/|light/|express/|transcoding/|embedding/)",
  "@modelcontextprotocol/": "rpc/mcp/",
  express: "(express|transcoding|embedding)/",
  "json-rpc-2\\.0": "rpc/json-rpc/",
  // sqlite3 is archived upstream, so only two files depend on it.
  "(@types/)?sqlite3": "db/sqlite/sqlite(-connections)?\\.ts$",
  "(@types/)?pg": "db/postgresql/postgresql\\.ts$",
  knex: "(db|node/migrations)/",
  commander: "cli/",
  "prom-client": "metrics/",
  "@opentelemetry/": "metrics/",
  "tlsn-wasm": "attestation/",
  piscina: "base/async/thread-pool\\.ts$",
};
const packages = [
  {
    from: { path: "^src/" },
    to: { path: "^node_modules/", pathNot: `^node_modules/(${Object.keys(restricted).join("|")})` },
  },
  ...Object.entries(restricted).map(([name, from]) => ({
    from: { path: `^src/${from}` },
    to: { path: `^node_modules/${name}` },
  })),
];

module.exports = {
  allowed: [...everywhere, ...modules, ...folders, ...client, ...explorer, ...commandLine, ...protocols, ...packages],
  allowedSeverity: "error",
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "no-cycles-of-folders", severity: "error", scope: "folder", from: {}, to: { circular: true } },
    {
      name: "shipped-code-needs-shipped-packages",
      severity: "error",
      // Pages are bundled when the package is built.
      from: { path: "^src/", pathNot: "^src/pages/explore/" },
      // Optional peers have the type npm-no-pkg as well.
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown", "unknown"], dependencyTypesNot: ["npm-peer"] },
    },
  ],
  // A file directly in src/ must be main.ts, or import it, which the list above allows to none. So new ones are rejected.
  required: [
    {
      name: "only-main-is-loose",
      comment: "Every file belongs to a module.",
      severity: "error",
      module: { path: "^src/[^/]+$" },
      to: { path: "^src/main\\.ts$" },
    },
  ],
  options: {
    doNotFollow: { path: ["node_modules", "^gen/"] },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      extensions: [".ts", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default"],
    },
  },
};
