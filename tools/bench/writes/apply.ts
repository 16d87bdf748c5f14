/** Measures the processor time of applying blocks of 25 mixed transactions, on both engines. */
import { toBinary } from "@bufbuild/protobuf";
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BlockSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { startPostgres } from "../../../test/helpers/databases/postgres-server.js";
import { makeMixedBlocks } from "./mixed.js";
import { usageOfTree } from "../servers/process-tree.js";
import type { BenchSettings, Result, Row } from "../row.js";
import { median, ratioOfRounds } from "../statistics.js";

const here = fileURLToPath(new URL("../../../..", import.meta.url));
const script = fileURLToPath(new URL("apply-process.js", import.meta.url));

/** Figures of one run, by name. */
type Figures = Record<string, number>;

/** Measures this build, and another one in the same rounds if it is given. */
export async function benchApply({ directory, blocks, rounds, say, against }: BenchSettings): Promise<Row[]> {
  const home = join(directory, "apply");
  await mkdir(home);
  say(`making ${blocks} blocks`);
  const file = join(home, "blocks");
  await writeFile(file, Buffer.concat((await makeMixedBlocks(join(home, "made.sqlite"), blocks)).flatMap(framed)));
  const builds = [here, ...(against === undefined ? [] : [resolve(against)])];
  const sqlite = async (build: string): Promise<Figures> => {
    const path = join(home, "run");
    await mkdir(path);
    try {
      return await run(build, `sqlite:${join(path, "gatehouse.sqlite")}`, file);
    } finally {
      await rm(path, { recursive: true });
    }
  };
  const rows = [await measure("SQLite", builds, rounds, sqlite, say)];
  const server = await startPostgres();
  if (typeof server === "string") {
    return [...rows, { name: "PostgreSQL", figures: {}, note: server }];
  }
  try {
    const postgres = async (build: string): Promise<Figures> => {
      const before = await serverCpuUs();
      const figures = await run(build, await server.createDatabase(), file);
      return { ...figures, "server s": ((await serverCpuUs()) - before) / 1_000_000 };
    };
    return [...rows, await measure("PostgreSQL", builds, rounds, postgres, say)];
  } finally {
    await server.remove();
  }
}

function framed(block: Parameters<typeof toBinary<typeof BlockSchema>>[1]): Uint8Array[] {
  const bytes = toBinary(BlockSchema, block);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return [length, bytes];
}

async function run(build: string, url: string, file: string): Promise<Figures> {
  const { stdout } = await promisify(execFile)(process.execPath, [script, build, url, file]);
  return JSON.parse(stdout) as Figures;
}

/** Returns the processor time of all child processes but the node's, thus of the server. */
async function serverCpuUs(): Promise<number> {
  return (await usageOfTree(process.pid)).cpuUs - process.cpuUsage().user - process.cpuUsage().system;
}

async function measure(
  engine: string,
  builds: readonly string[],
  rounds: number,
  apply: (build: string) => Promise<Figures>,
  say: (what: string) => void,
): Promise<Row> {
  const runs = builds.map((): Figures[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const i of round % 2 === 0 ? builds.keys() : [...builds.keys()].reverse()) {
      say(`${engine}, round ${round + 1}`);
      runs[i]!.push(await apply(builds[i]!));
    }
  }
  const [now, before] = runs.map(resultOf);
  const name = `${engine}: applying blocks of 25 mixed transactions`;
  if (before === undefined) {
    return { name, ...now! };
  }
  const cpu = runs.map((figures) => figures.map((figure) => figure["cpu µs/transaction"]!));
  return { name, baseline: "the other build", ...ratioOfRounds(cpu[1]!, cpu[0]!), ...now!, before };
}

function resultOf(runs: readonly Figures[]): Result {
  const names = Object.keys(runs[0]!);
  return { figures: Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]!))])) };
}
