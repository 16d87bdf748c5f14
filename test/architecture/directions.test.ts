/** The import rules between the modules of src/: forbidden imports in a copy of it are violations. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { type Teardown, temporaryDirectory, fileTeardown } from "../helpers/nodes/teardown.js";
import { toolProgram, whyNoTool } from "../helpers/process/programs.js";
import { testUnless } from "../helpers/nodes/when.js";

/** Files to add, by their paths from src/, and the expected violations. */
interface ForbiddenImport {
  readonly title: string;
  /** Text of each file. */
  readonly files: Readonly<Record<string, string>>;
  /** `rule: from → to`, or `rule: from` if the file itself is a violation. */
  readonly violations: readonly string[];
}

const importing = (path: string): string => `import * as it from "${path}";\nexport const used = it;\n`;

/** The files of packages that are imported. */
const entries: Readonly<Record<string, string>> = {
  express: "express/index.js",
  "@grpc/grpc-js": "@grpc/grpc-js/build/src/index.js",
  "@connectrpc/connect": "@connectrpc/connect/dist/esm/index.js",
  "@noble/curves/ed25519.js": "@noble/curves/ed25519.js",
  pg: "pg/esm/index.mjs",
  knex: "knex/knex.js",
  sqlite3: "sqlite3/lib/sqlite3.js",
};

/** Declares an import that is not in the list of allowed ones. */
function unlisted(title: string, file: string, path: string, source = importing(path)): ForbiddenImport {
  const from = join("src", file);
  const entry = entries[path];
  const to = entry === undefined ? join(dirname(from), path).replace(/js$/, "ts") : `node_modules/${entry}`;
  return { title, files: { [file]: source }, violations: [`not-in-allowed: ${from} → ${to}`] };
}

const config = "../config/config.js";
const ofType = `export type { Config } from "${config}";\n`;
const atRunTime = `export const load = () => import("${config}");\n`;

const forbiddenImports: readonly ForbiddenImport[] = [
  unlisted("storage → config", "storage/plant.ts", config),
  unlisted("storage → config, only for a type", "storage/plant-type.ts", config, ofType),
  unlisted("storage → config, at run time", "storage/plant-late.ts", config, atRunTime),
  unlisted("rpc → a feature", "rpc/grpc/plant.ts", "../../control/service.js"),
  unlisted("rpc → edge", "rpc/http/plant.ts", "../../edge/rate-limit.js"),
  unlisted("codecs → a protocol", "rpc/codec/plant.ts", "../mcp/mcp-server.js"),
  unlisted("edge → a protocol", "edge/plant.ts", "../rpc/grpc/grpc-handler.js"),
  unlisted("a folder of a module → one that may use it", "chain/blocks/plant.ts", "../mempool/mempool.js"),
  unlisted("base → a folder that it does not name", "base/files/plant.ts", "../crypto/hash.js"),
  unlisted("db → express", "db/plant.ts", "express"),
  unlisted("node → express", "node/plant-express.ts", "express"),
  unlisted("node → what the package exports", "node/plant-export.ts", "../embedding/index.js"),
  unlisted("express → a feature", "express/plant.ts", "../health/service.js"),
  unlisted("transcoding → the edge", "transcoding/plant.ts", "../edge/edge.js"),
  unlisted("a feature → another", "info/plant.ts", "../control/service.js"),
  unlisted("a feature → grpc-js", "chain/plant.ts", "@grpc/grpc-js"),
  unlisted("a feature → Connect", "zk/plant.ts", "@connectrpc/connect"),
  unlisted("a feature → the driver of an engine", "peers/plant.ts", "pg"),
  unlisted("a feature's rules → queries", "storage/plant-rule.ts", "../db/queries/database.js"),
  unlisted("a store → an engine", "storage/plant-store.ts", "../db/sqlite/sqlite.js"),
  unlisted("a store → knex", "zk/plant-store.ts", "knex"),
  unlisted("node → an engine", "node/plant-engine.ts", "../db/sqlite/sqlite.js"),
  unlisted("node → knex", "node/plant-knex.ts", "knex"),
  unlisted("db → the driver of SQLite", "db/plant-driver.ts", "sqlite3"),
  unlisted("a feature → node", "metrics/plant.ts", "../node/lifecycle/clock.js"),
  unlisted("base → db", "base/plant.ts", "../db/rows/batch.js"),
  unlisted("db → a feature", "db/plant-feature.ts", "../zk/poseidon.js"),
  unlisted("a module of the command line → commands of another", "cli/doctor/plant.ts", "../data/database.js"),
  unlisted("cli → the part of the client that calls nodes", "cli/plant.ts", "../../client/src/gatehouse.js"),
  unlisted("client → the node except signed messages", "../client/src/plant.ts", "../../src/base/crypto/hash.js"),
  unlisted("client → a package that it lacks", "../client/src/plant-package.ts", "@noble/curves/ed25519.js"),
  {
    title: "a file next to main.ts",
    files: { "plant.ts": "export const used = 1;\n" },
    violations: ["only-main-is-loose: src/plant.ts"],
  },
  {
    title: "a cycle of files",
    files: { "config/plant-a.ts": importing("./plant-b.js"), "config/plant-b.ts": importing("./plant-a.js") },
    violations: ["no-cycles: src/config/plant-a.ts → src/config/plant-b.ts"],
  },
  {
    title: "features that import each other",
    files: {
      "attestation/plant-a.ts": importing("../control/plant-a.js"),
      "attestation/plant-b.ts": "export const used = 1;\n",
      "control/plant-a.ts": "export const used = 1;\n",
      "control/plant-b.ts": importing("../attestation/plant-b.js"),
    },
    violations: [
      "not-in-allowed: src/attestation/plant-a.ts → src/control/plant-a.ts",
      "not-in-allowed: src/control/plant-b.ts → src/attestation/plant-b.ts",
    ],
  },
  {
    title: "a development dependency",
    files: { "node/plant.ts": importing("ava") },
    violations: ["shipped-code-needs-shipped-packages: src/node/plant.ts → node_modules/ava/entrypoints/main.mjs"],
  },
];

/** The violations of files and imports, and the cycles between folders. */
interface Verdict {
  readonly violations: readonly string[];
  readonly folderCycles: readonly string[];
}

interface Report {
  readonly summary: {
    readonly violations: readonly {
      readonly from: string;
      readonly to: string;
      readonly rule: { readonly name: string };
    }[];
  };
}

/** Checks a copy of src/ with these files, with the rules and the program of CI. */
async function check(t: Teardown, added: readonly ForbiddenImport[]): Promise<Verdict> {
  const dir = await temporaryDirectory(t);
  for (const path of [
    "src",
    "client/src",
    "client/package.json",
    "package.json",
    "tsconfig.json",
    ".dependency-cruiser.cjs",
  ]) {
    await cp(path, join(dir, path), { recursive: true });
  }
  for (const path of ["gen", "node_modules"]) {
    await symlink(resolve(path), join(dir, path));
  }
  for (const [file, source] of added.flatMap(({ files }) => Object.entries(files))) {
    await writeFile(join(dir, "src", file), source, { flag: "wx" });
  }
  const args = [toolProgram("depcruise"), "src", "client/src", "--preserve-symlinks", "--output-type", "json"];
  const child = spawn(process.execPath, args, { cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  const { violations } = (JSON.parse(output) as Report).summary;
  const isFolders = ({ rule }: (typeof violations)[number]) => rule.name === "no-cycles-of-folders";
  return {
    violations: violations
      .filter((violation) => !isFolders(violation))
      .map(({ rule, from, to }) => `${rule.name}: ${from === to ? from : `${from} → ${to}`}`)
      .sort(),
    folderCycles: violations.filter(isFolders).map(({ from, to }) => `${from} → ${to}`),
  };
}

const testRules = testUnless(whyNoTool("dependency-cruiser"));
let found: Verdict;
const fileScope = fileTeardown();
testRules.before(async () => {
  found = await check(fileScope, forbiddenImports);
});

for (const { title, files, violations } of forbiddenImports) {
  testRules(`rejects ${title}`, (t) => {
    const paths = Object.keys(files).map((file) => join("src", file));
    const actual = found.violations.filter((line) => paths.some((file) => line.includes(` ${file}`)));
    t.deepEqual(actual, [...violations]);
  });
}

testRules("rejects a cycle of folders without a cycle of files", (t) => {
  t.true(found.folderCycles.includes("src/attestation → src/control"));
  t.true(found.folderCycles.includes("src/control → src/attestation"));
});

testRules("accepts an unchanged copy", async (t) => {
  t.deepEqual(await check(t, []), { violations: [], folderCycles: [] });
});
