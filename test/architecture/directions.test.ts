/** The directions between the rooms of src/: forbidden imports are planted in a copy of it, and each is refused. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { type Teardown, temporaryDirectory, fileTeardown } from "../helpers/nodes/teardown.js";
import { toolProgram, whyNoTool } from "../helpers/nodes/tools.js";
import { testUnless } from "../helpers/nodes/when.js";

/** Files to plant, by their paths from src/, and what the rules must say of them, no more and no less. */
interface Plant {
  readonly title: string;
  /** Text of each file. */
  readonly files: Readonly<Record<string, string>>;
  /** `rule: from → to`, or `rule: from` where a file itself is refused. */
  readonly refused: readonly string[];
}

const importing = (path: string): string => `import * as it from "${path}";\nexport const used = it;\n`;

/** One import that the list of what is allowed does not have. */
function unlisted(title: string, file: string, path: string, target: string, source = importing(path)): Plant {
  return { title, files: { [file]: source }, refused: [`not-in-allowed: src/${file} → ${target}`] };
}

const config = "../config/config.js";
const grpcJs = "node_modules/@grpc/grpc-js/build/src/index.js";

const plants: readonly Plant[] = [
  unlisted("storage → config", "storage/plant.ts", config, "src/config/config.ts"),
  unlisted(
    "storage → config, for a type alone",
    "storage/plant-type.ts",
    config,
    "src/config/config.ts",
    `export type { Config } from "${config}";\n`,
  ),
  unlisted(
    "storage → config, while it runs",
    "storage/plant-late.ts",
    config,
    "src/config/config.ts",
    `export const load = () => import("${config}");\n`,
  ),
  unlisted("rpc → a feature", "rpc/grpc/plant.ts", "../../control/report-ttl.js", "src/control/report-ttl.ts"),
  unlisted("rpc → edge", "rpc/http/plant.ts", "../../edge/cidr.js", "src/edge/cidr.ts"),
  unlisted("codecs → a protocol", "rpc/codec/plant.ts", "../mcp/mcp-server.js", "src/rpc/mcp/mcp-server.ts"),
  unlisted("edge → a protocol", "edge/plant.ts", "../rpc/grpc/grpc-handler.js", "src/rpc/grpc/grpc-handler.ts"),
  unlisted(
    "a folder of a module → one that may use it",
    "chain/blocks/plant.ts",
    "../mempool/mempool.js",
    "src/chain/mempool/mempool.ts",
  ),
  unlisted(
    "base → a folder that it does not name",
    "base/files/plant.ts",
    "../crypto/hash.js",
    "src/base/crypto/hash.ts",
  ),
  unlisted("db → express", "db/plant.ts", "express", "node_modules/express/index.js"),
  unlisted("node → express", "node/plant-express.ts", "express", "node_modules/express/index.js"),
  unlisted(
    "node → what the package exports",
    "node/plant-export.ts",
    "../embedding/index.js",
    "src/embedding/index.ts",
  ),
  unlisted("express → a feature", "express/plant.ts", "../health/service.js", "src/health/service.ts"),
  unlisted("transcoding → the edge", "transcoding/plant.ts", "../edge/edge.js", "src/edge/edge.ts"),
  unlisted("a feature → another", "info/plant.ts", "../control/report-ttl.js", "src/control/report-ttl.ts"),
  unlisted("a feature → grpc-js", "chain/plant.ts", "@grpc/grpc-js", grpcJs),
  unlisted(
    "a feature → Connect",
    "zk/plant.ts",
    "@connectrpc/connect",
    "node_modules/@connectrpc/connect/dist/esm/index.js",
  ),
  unlisted("a feature → the driver of an engine", "peers/plant.ts", "pg", "node_modules/pg/esm/index.mjs"),
  unlisted(
    "a feature's rules → queries",
    "storage/plant-rule.ts",
    "../db/queries/database.js",
    "src/db/queries/database.ts",
  ),
  unlisted("a store → an engine", "storage/plant-store.ts", "../db/sqlite/sqlite.js", "src/db/sqlite/sqlite.ts"),
  unlisted("a store → knex", "zk/plant-store.ts", "knex", "node_modules/knex/knex.js"),
  unlisted("node → knex", "node/plant-knex.ts", "knex", "node_modules/knex/knex.js"),
  unlisted("db → the driver of SQLite", "db/plant-driver.ts", "sqlite3", "node_modules/sqlite3/lib/sqlite3.js"),
  unlisted("a feature → node", "metrics/plant.ts", "../node/lifecycle/clock.js", "src/node/lifecycle/clock.ts"),
  unlisted("base → db", "base/plant.ts", "../db/rows/batch.js", "src/db/rows/batch.ts"),
  unlisted(
    "a room of the command line → another's commands",
    "cli/doctor/plant.ts",
    "../data/node-config.js",
    "src/cli/data/node-config.ts",
  ),
  unlisted(
    "cli → what of the client calls nodes",
    "cli/plant.ts",
    "../../client/src/gatehouse.js",
    "client/src/gatehouse.ts",
  ),
  {
    title: "client → anything of the node but what is signed",
    files: { "../client/src/plant.ts": importing("../../src/base/crypto/hash.js") },
    refused: ["not-in-allowed: client/src/plant.ts → src/base/crypto/hash.ts"],
  },
  {
    title: "client → a package that it does not name",
    files: { "../client/src/plant-package.ts": importing("@noble/curves/ed25519.js") },
    refused: ["not-in-allowed: client/src/plant-package.ts → node_modules/@noble/curves/ed25519.js"],
  },
  {
    title: "a file beside main.ts",
    files: { "plant.ts": "export const used = 1;\n" },
    refused: ["only-main-is-loose: src/plant.ts"],
  },
  {
    title: "a cycle of files",
    files: { "config/plant-a.ts": importing("./plant-b.js"), "config/plant-b.ts": importing("./plant-a.js") },
    refused: ["no-cycles: src/config/plant-a.ts → src/config/plant-b.ts"],
  },
  {
    title: "features that import each other",
    files: {
      "attestation/plant-a.ts": importing("../control/plant-a.js"),
      "attestation/plant-b.ts": "export const used = 1;\n",
      "control/plant-a.ts": "export const used = 1;\n",
      "control/plant-b.ts": importing("../attestation/plant-b.js"),
    },
    refused: [
      "not-in-allowed: src/attestation/plant-a.ts → src/control/plant-a.ts",
      "not-in-allowed: src/control/plant-b.ts → src/attestation/plant-b.ts",
    ],
  },
  {
    title: "a development dependency",
    files: { "node/plant.ts": importing("ava") },
    refused: ["shipped-code-needs-shipped-packages: src/node/plant.ts → node_modules/ava/entrypoints/main.mjs"],
  },
];

/** What the rules say of src/: of files and imports, and which folders stand in a cycle with each other. */
interface Verdict {
  readonly refused: readonly string[];
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

/** Checks a copy of src/ in which these files are planted, with the rules and the program of CI. */
async function check(t: Teardown, planted: readonly Plant[]): Promise<Verdict> {
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
  for (const [file, source] of planted.flatMap(({ files }) => Object.entries(files))) {
    await writeFile(join(dir, "src", file), source, { flag: "wx" });
  }
  const args = [toolProgram("depcruise"), "src", "client/src", "--preserve-symlinks", "--output-type", "json"];
  const child = spawn(process.execPath, args, { cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  const { violations } = (JSON.parse(output) as Report).summary;
  const isFolders = ({ rule }: (typeof violations)[number]) => rule.name === "no-cycles-of-folders";
  return {
    refused: violations
      .filter((violation) => !isFolders(violation))
      .map(({ rule, from, to }) => `${rule.name}: ${from === to ? from : `${from} → ${to}`}`)
      .sort(),
    folderCycles: violations.filter(isFolders).map(({ from, to }) => `${from} → ${to}`),
  };
}

const testRules = testUnless(whyNoTool("dependency-cruiser"));
let found: Verdict;
const whole = fileTeardown();
testRules.before(async () => {
  found = await check(whole, plants);
});

for (const { title, files, refused } of plants) {
  testRules(`refused: ${title}`, (t) => {
    const about = Object.keys(files).map((file) => join("src", file));
    const said = found.refused.filter((line) => about.some((file) => line.includes(` ${file}`)));
    t.deepEqual(said, [...refused]);
  });
}

testRules("refused: a cycle of folders, though no file of them is in a cycle", (t) => {
  t.true(found.folderCycles.includes("src/attestation → src/control"));
  t.true(found.folderCycles.includes("src/control → src/attestation"));
});

testRules("a copy without any of these is accepted", async (t) => {
  t.deepEqual(await check(t, []), { refused: [], folderCycles: [] });
});
