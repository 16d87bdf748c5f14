/**
 * The rooms of src/ and which way they may see each other, as a list of what is allowed: an import that no line names
 * is refused, whoever it is between. docs/internals/architecture.md lists them; test/architecture plants imports that must
 * be refused.
 *
 *   main → cli → node → features → rpc, db, tree, base        node → express → transcoding → rpc        cli → light → rpc        cli, light → client → some files of tree, storage, base
 *
 * The client is a package of its own (client/), for browsers, too: of src/ it sees what says what is signed, what is
 * proved and how a document is read, in files that need nothing of Node.js. The command line sees what of it signs and
 * what checks proofs, and nothing that calls nodes.
 *
 * Inside cli/ what finds and runs commands sees these, and they what all of them share: how a command is called, calls to
 * nodes, the terminal. Inside rpc/ the rooms stand in a row, too: what all protocols share, the codecs and the exchange, then http, json-rpc,
 * describe, then the other protocols, then server, which puts them together.
 */

const features = "attestation|chain|control|event|health|info|metrics|peers|search|snapshot|state|storage|zk";

/** Allowed everywhere: a folder's own files, src/base, generated code, and Node.js itself. */
const everywhere = [
  { from: { path: "^src/(.+)/[^/]+$" }, to: { path: "^src/$1/[^/]+$" } },
  { from: { path: "^src/(?!base/)" }, to: { path: "^src/base/" } },
  { from: { path: "^(client/)?src/" }, to: { path: "^gen/" } },
  { from: { path: "^src/" }, to: { dependencyTypes: ["core"] } },
];

/** From a room to others: paths of rooms, or of single files of a room. */
const see = (from, ...to) => ({ from: { path: `^src/${from}` }, to: { path: `^src/(${to.join("|")})` } });
const rooms = [
  see("main\\.ts$", "cli/"),
  // What the package exports: a node in somebody else's application, and plain routes for somebody else's services.
  see("embedding/", "node/", "config/", "health/process-errors\\.ts$", "rpc/connect/routes\\.ts$"),
  see("transcoding/", "rpc/", "edge/unrestricted-gate\\.ts$"),
  // The application that a node is: it knows protocols, and no part of the node.
  see("express/", "rpc/", "transcoding/router\\.ts$"),
  see("node/", "express/application\\.ts$"),
  see("cli/", "node/", "light/", "config/", `(${features})/`, "rpc/errors\\.ts$"),
  see("node/", "config/", `(${features})/`, "edge/", "workers/", "db/", "rpc/", "tree/"),
  see("(snapshot|state|storage|zk|chain)/", "tree/"),
  // What an implementation is, the failures that it may throw, and the forms of parameters; no machinery.
  see(`(${features})/`, "rpc/(service|errors|parameters)\\.ts$"),
  // Queries stand in the stores of a feature; the rest of it speaks of blocks, programs, leaves and peers.
  see(
    "(chain|peers|snapshot|state|storage|tree|zk)/.+-store\\.ts$",
    "db/queries/(database|dialects)\\.ts$",
    "db/rows/(batch|bulk-changes|bulk-insert|chunks|write-buffer|write-probe)\\.ts$",
  ),
  // The checksums that rows are stored with, which reads compare; they know no engine.
  see("(chain|state|storage|tree|zk)/", "db/rows/row-hashes\\.ts$"),
  // Reads by proofs, and serves what it has read: the protocols, and no feature, but for how its tree hashes.
  see("light/", "rpc/", "edge/unrestricted-gate\\.ts$", "zk/poseidon\\.ts$"),
  // Calls other nodes, by whatever carries it.
  see("peers/", "rpc/channel\\.ts$"),
  // Serve for a node, of which they know what it is told and asked, and no part of it.
  see("workers/", "rpc/(service|errors|port/listen)\\.ts$", "edge/edge\\.ts$"),
  // Implements the gate of rpc.
  see("edge/", "rpc/(service|errors|gate)\\.ts$"),
];
const client = [
  { from: { path: "^client/src/" }, to: { path: "^client/src/" } },
  { from: { path: "^client/src/" }, to: { path: "^src/base/crypto/signing-payloads\\.ts$" } },
  // How proofs are checked, how a document is taken apart, and in which words reads are refused.
  { from: { path: "^client/src/" }, to: { path: "^src/tree/(hashes|nodes|path|state-format)\\.ts$" } },
  {
    from: { path: "^client/src/" },
    to: { path: "^src/storage/(documents/(document|document-parts|json-text|value-types)|programs/rejections)\\.ts$" },
  },
  { from: { path: "^client/src/" }, to: { path: "^src/base/(crypto/parse-hash|text/show-text)\\.ts$" } },
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
 * The explorer is a page: of the client what signs and checks proofs, of src/ how a document is taken apart and what a
 * transaction does in words.
 */
const explorer = [
  { from: { path: "^src/pages/explore/" }, to: { path: "^src/pages/explore/" } },
  {
    from: { path: "^src/pages/explore/" },
    to: { path: "^client/src/(bytes|identity|keys|proof/(check|hashing|headers|json|network|proof-error))\\.ts$" },
  },
  {
    from: { path: "^src/pages/explore/" },
    to: {
      path: "^src/(base/(describe-operation|crypto/signing-payloads)|storage/documents/(document|document-parts|json-text))\\.ts$",
    },
  },
  {
    from: { path: "^src/pages/explore/" },
    to: { path: "^node_modules/(@bufbuild/protobuf/dist/esm/wire|poseidon-lite|uplot)/" },
  },
];
/** Directions between the folders of one module, from the first of each row to the others. */
const within = (module, directions) =>
  Object.entries(directions).map(([folder, others]) =>
    see(`${module}/${folder === "." ? "[^/]+$" : `${folder}/`}`, `${module}/(${others})/`),
  );
const folders = [
  ...within("base", { ".": "crypto", crypto: "caches|errors|files", limits: "caches", logging: "async|errors|limits" }),
  ...within("db", {
    ".": "postgresql|queries|sqlite",
    copies: "migrations|queries|rows|sqlite",
    migrations: "queries|rows",
    "(postgresql|rows|sqlite)": "queries",
  }),
  see("db/copies/", "db/open\\.ts$"),
  ...within("chain", {
    ".": "blocks|mempool|transactions|writer",
    writer: "blocks|mempool|transactions",
    mempool: "blocks|transactions",
    blocks: "transactions",
  }),
  ...within("storage", {
    ".": "documents|programs",
    stores: "changes|documents|programs",
    changes: "documents|programs",
    programs: "documents",
  }),
  ...within("peers", { ".": "address-book|handshake|relay", "(handshake|relay|sync)": "address-book" }),
  ...within("node", {
    ".": "chain|data|lifecycle|network|serving",
    serving: "chain|data|lifecycle|network",
    network: "chain|lifecycle",
    data: "chain|lifecycle",
    chain: "lifecycle",
  }),
];
const commandLine = [
  // Finds and runs commands; those that need no room of their own are there, too.
  see("cli/[^/]+$", "cli/"),
  see("cli/calls/", "cli/usage/"),
  see("cli/(data|doctor|nodes|transactions)/", "cli/(calls|terminal|usage)/"),
  // The samples of a devnet are transactions.
  see("cli/nodes/", "cli/transactions/"),
];
const protocols = [
  see("rpc/(codec|exchange|http|json-rpc|describe|mcp|grpc|connect|port|server)/", "rpc/[^/]+$"),
  see("rpc/(http|json-rpc|describe|mcp|grpc|connect)/", "rpc/codec/"),
  see("rpc/(http|json-rpc|mcp|grpc|connect|port|server)/", "rpc/exchange/"),
  see("rpc/(json-rpc|describe|mcp|connect|server)/", "rpc/http/"),
  see("rpc/(node-call|describe|mcp|server)/", "rpc/json-rpc/"),
  // Tells which of the failures of an rpc ends a list.
  see("rpc/node-call/", "rpc/errors\\.ts$"),
  see("rpc/(mcp|server)/", "rpc/describe/"),
  see("rpc/(mcp|grpc|server)/", "rpc/port/"),
  see("rpc/server/", "rpc/(connect|grpc|mcp)/"),
];

/** Packages that only some rooms may know; all others are everybody's. */
const kept = {
  "@grpc/": "rpc/grpc/",
  "@connectrpc/": "(rpc/connect/|cli/|light/|express/|transcoding/|embedding/)",
  "@modelcontextprotocol/": "rpc/mcp/",
  express: "(express|transcoding|embedding)/",
  "json-rpc-2\\.0": "rpc/json-rpc/",
  // sqlite3 is archived upstream: two files stand between it and everything else.
  "(@types/)?sqlite3": "db/sqlite/sqlite(-statements)?\\.ts$",
  "(@types/)?pg": "db/postgresql/postgresql\\.ts$",
  knex: "db/",
  commander: "cli/",
  "prom-client": "metrics/",
  "@opentelemetry/": "metrics/",
  "tlsn-wasm": "attestation/",
  piscina: "base/async/thread-pool\\.ts$",
};
const packages = [
  {
    from: { path: "^src/" },
    to: { path: "^node_modules/", pathNot: `^node_modules/(${Object.keys(kept).join("|")})` },
  },
  ...Object.entries(kept).map(([name, from]) => ({
    from: { path: `^src/${from}` },
    to: { path: `^node_modules/${name}` },
  })),
];

module.exports = {
  allowed: [...everywhere, ...rooms, ...folders, ...client, ...explorer, ...commandLine, ...protocols, ...packages],
  allowedSeverity: "error",
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "no-cycles-of-folders", severity: "error", scope: "folder", from: {}, to: { circular: true } },
    {
      name: "shipped-code-needs-shipped-packages",
      severity: "error",
      // Pages are bundled when the package is built.
      from: { path: "^src/", pathNot: "^src/pages/explore/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown", "unknown"] },
    },
  ],
  // A loose file is main.ts, or imports it, which the list above allows to nobody: also one without any import is seen.
  required: [
    {
      name: "only-main-is-loose",
      comment: "Every file has a room.",
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
