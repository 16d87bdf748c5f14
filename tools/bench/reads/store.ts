/** Measures reads from a node with many programs, each against a bare server that responds with the same bytes. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { startProgress } from "../../../src/cli/terminal/progress.js";
import { submitChange } from "../../../src/cli/transactions/submit.js";
import { openDatabase } from "../../../src/db/open.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { fillRowHashes } from "../../../test/helpers/databases/fill-row-hashes.js";
import type { Database } from "../../../src/db/queries/database.js";
import { loadNodeKey, type NodeKey, nodeKeyPath } from "../../../src/base/crypto/node-key.js";
import { createWriteBuffer } from "../../../src/db/rows/write-buffer.js";
import { readLeaves } from "../../../src/storage/stores/program-state-store.js";
import { addProgramTables } from "../../../src/storage/stores/program-tables-store.js";
import { authority, makeHome } from "../blocks.js";
import { foldName } from "../../../src/storage/programs/programs.js";
import { compareReads } from "../load/compare.js";
import { httpLoad, type Load, randomLoad } from "../load/load.js";
import { commitToLoaded, plantLeaves } from "../loaded-state.js";
import { probeHealth } from "../load/prober.js";
import type { BenchSettings, Row } from "../row.js";
import { type ServerProcess, startGatehouse } from "../servers/server-process.js";
import { latencyFigures } from "../statistics.js";

const owners = 1_000;
/** Number of programs that are inserted into the tree at a time. */
const portion = 5_000;
/** Number of programs in one insert. Their fields must fit into 500 rows. */
const batch = 200;
const words = ["alpha", "bravo", "notes", "guest", "ledger", "vault", "Größe", "ключи", "token", "price"];
const bigFields = 64;

/** Returns the address of the loaded program with this number. */
export const addressOf = (i: number): string => `stor-${createHash("sha1").update(String(i)).digest("hex")}`;
const ownerOf = (i: number): string => `0x${(i % owners).toString(16).padStart(64, "0")}`;

/** Loads the programs, and measures. */
export async function benchStore(bench: BenchSettings): Promise<Row[]> {
  const { directory, programs, seconds, say } = bench;
  const { dir, flags, url } = await makeHome(join(directory, "store"));
  const key = await loadNodeKey(nodeKeyPath(dir));
  const loadStart = performance.now();
  const big = await loadPrograms(url, programs);
  // The program of 1 MB comes after them.
  await commitToLoaded(url, [authority], (database) => plantTree(database, programs + (programs % 2) + 1));
  const loadS = (performance.now() - loadStart) / 1000;

  const bootStart = performance.now();
  const node = await startGatehouse(flags);
  const rows: Row[] = [];
  try {
    await fetch(`http://127.0.0.1:${node.port}/health`);
    const bootMs = performance.now() - bootStart;
    const base = "/storage-program";
    const middle = addressOf(Math.floor(programs / 2));
    const rare = (programs - 7).toString(36);
    const subjects: (readonly [name: string, path: string, load: Load])[] = [
      ["program, hot", `${base}/${middle}`, httpLoad(`${base}/${middle}`)],
      ["program, cold", `${base}/${middle}`, randomLoad(() => randomProgram(programs))],
      ["field of a 1 MB document", `${base}/${big}/field/f7`, httpLoad(`${base}/${big}/field/f7`)],
      ["owner page of 50", `${base}/owner/${ownerOf(1)}`, httpLoad(`${base}/owner/${ownerOf(1)}`)],
      ["search, many hits", `${base}/search?q=alpha`, httpLoad(`${base}/search?q=alpha`)],
      ["search, one hit", `${base}/search?q=%20${rare}`, httpLoad(`${base}/search?q=%20${rare}`)],
      ["search, no hit", `${base}/search?q=zzzzzz`, httpLoad(`${base}/search?q=zzzzzz`)],
    ];
    rows.push(...(await compareReads(subjects, node, bench)));
    say("/health while blocks are applied and searches run");
    rows.push(await healthUnderWork(node, key, Math.max(5, 2 * seconds)));
    rows.push({
      name: `with ${programs.toLocaleString("en")} programs`,
      figures: {
        "load s": loadS,
        "boot ms": bootMs,
        "memory after all MiB": (await node.usage()).rssBytes / 1024 ** 2,
      },
    });
  } finally {
    await node.stop();
  }
  return rows;
}

/** Inserts the leaves of loaded programs, starting at the first one, into the state tree. */
export async function plantTree(database: Database, programs: number): Promise<void> {
  const progress = startProgress("leaves", programs);
  for (let i = 0; i < programs; i += portion) {
    const addresses = Array.from({ length: Math.min(portion, programs - i) }, (_, k) => addressOf(i + k));
    const touched = new Map(
      addresses.map((address) => [
        address,
        { isComplete: false, hadTree: false, text: undefined, fields: new Set<string>() },
      ]),
    );
    await plantLeaves(
      database,
      await readLeaves(database.read, addProgramTables(createWriteBuffer(database.read)), touched),
    );
    progress.update(i + addresses.length);
  }
  progress.end();
}

/** Writes rows as applied blocks would, but in bulk. Returns the address of a document of 1 MB. */
export async function loadPrograms(url: string, count: number, owner = ownerOf): Promise<string> {
  const database = await openDatabase(url);
  await migrate(database);
  const progress = startProgress("programs", count);
  const insert = async (first: number, texts: readonly string[], fields: readonly (readonly [string, string])[]) => {
    const rows = texts.map((text, k) => {
      const i = first + k;
      const name = `${words[i % words.length]} ${words[(7 * i) % 9]} ${i.toString(36)}`;
      return {
        address: addressOf(i),
        owner: owner(i),
        name,
        name_folded: foldName(name),
        encoding: "json",
        type: "object",
        mode: i % 4 === 3 ? "owner" : "public",
        access: '{"allowed":[],"blacklisted":[],"groups":{}}',
        size_bytes: text.length,
        created_ms: i,
        updated_ms: i,
      };
    });
    const fieldRows = rows.flatMap(({ address }) =>
      fields.map(([name, value], position) => ({
        address,
        name_json: JSON.stringify(name),
        position,
        type: "string",
        value,
      })),
    );
    await database.transaction((db) =>
      db.runAll((sql) => [
        sql("programs").insert(rows),
        sql("program_documents").insert(rows.map(({ address }, k) => ({ address, data: texts[k]! }))),
        sql("program_fields").insert(fieldRows),
      ]),
    );
  };
  const text = '{"title":"A program of many","note":"as small as most of them are"}';
  const fields = [
    ["title", '"A program of many"'],
    ["note", '"as small as most of them are"'],
  ] as const;
  try {
    for (let i = 0; i < count; i += batch) {
      await insert(
        i,
        Array.from({ length: Math.min(batch, count - i) }, () => text),
        fields,
      );
      progress.update(Math.min(count, i + batch));
    }
    const value = JSON.stringify("x".repeat(Math.floor(1_000_000 / bigFields) - 10));
    const bigParts = Array.from({ length: bigFields }, (_, i) => [`f${i}`, value] as const);
    // Use an even number, which makes the program public.
    const big = count + (count % 2);
    await insert(big, [`{${bigParts.map(([name]) => `"${name}":${value}`).join(",")}}`], bigParts);
    await fillRowHashes(database.write);
    return addressOf(big);
  } finally {
    progress.end();
    await database.close();
  }
}

/** Returns the path of a random public program. */
function randomProgram(programs: number): string {
  const i = Math.floor(Math.random() * programs);
  return `/storage-program/${addressOf(i % 4 === 3 ? i - 1 : i)}`;
}

async function healthUnderWork(node: ServerProcess, key: NodeKey, seconds: number): Promise<Row> {
  const url = `http://127.0.0.1:${node.port}`;
  const end = performance.now() + seconds * 1000;
  let submitted = 0;
  const submit = async (): Promise<void> => {
    while (performance.now() < end) {
      submitted++;
      const data = { data: { case: "json" as const, value: JSON.stringify({ n: submitted, text: "x".repeat(500) }) } };
      const value = { programName: `under work ${submitted}`, data, access: { mode: AccessMode.PUBLIC } };
      await submitChange(
        url,
        key,
        { case: "storage", value: { operation: { case: "createProgram", value } } },
        submitted,
      );
    }
  };
  const search = async (): Promise<void> => {
    while (performance.now() < end) {
      await (await fetch(`${url}/storage-program/search?q=zz`)).text();
      await (await fetch(`${url}/storage-program/search?q=alpha&offset=5000`)).text();
    }
  };
  const [latencies] = await Promise.all([
    probeHealth({ port: node.port, seconds }),
    submit(),
    submit(),
    search(),
    search(),
  ]);
  return {
    name: "/health while working",
    figures: {
      ...latencyFigures(latencies),
      "transactions/s": submitted / seconds,
    },
  };
}
