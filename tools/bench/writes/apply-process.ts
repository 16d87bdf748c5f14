/**
 * Applies blocks with the modules of a build, and prints the processor time. Arguments: the build's directory, the
 * database URL, the file of the blocks.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Block, BlockSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type * as Blocks from "../blocks.js";

const [build, url, file] = process.argv.slice(2) as [string, string, string];

/** Imports a compiled module of the build. */
async function load<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(join(build, "dist", path)).href)) as Module;
}

/** Returns the processor time of the main thread, in ns. */
async function mainThreadNs(): Promise<number> {
  return Number((await readFile(`/proc/self/task/${process.pid}/schedstat`, "utf8")).split(" ")[0]);
}

/** Returns the calls to read and write files, and the bytes written. */
async function filesUsed(): Promise<{ readonly reads: number; readonly writes: number; readonly bytes: number }> {
  const counters = await readFile("/proc/self/io", "utf8");
  const count = (name: string): number => Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(counters)![1]);
  return { reads: count("syscr"), writes: count("syscw"), bytes: count("wchar") };
}

const { withChain } = await load<typeof Blocks>("tools/bench/blocks.js");
const blocks: Block[] = [];
const bytes = await readFile(file);
for (let at = 0; at < bytes.length;) {
  const end = at + 4 + bytes.readUInt32BE(at);
  blocks.push(fromBinary(BlockSchema, bytes.subarray(at + 4, end)));
  at = end;
}

/** Blocks that are applied before the measurement, while functions are still compiled. */
const warmUp = Math.floor(blocks.length / 4);
await withChain(url, async (chain) => {
  let [cpu, main, ms, files] = [process.cpuUsage(), 0, 0, await filesUsed()];
  for (const [i, block] of blocks.entries()) {
    if (i === warmUp) {
      [cpu, main, ms, files] = [process.cpuUsage(), await mainThreadNs(), performance.now(), await filesUsed()];
    }
    await chain.apply(block);
  }
  const { user, system } = process.cpuUsage(cpu);
  const transactions = blocks.slice(warmUp).reduce((sum, block) => sum + block.transactions.length, 0);
  const [used, applied] = [await filesUsed(), blocks.length - warmUp];
  const each = {
    "cpu µs/transaction": (user + system) / transactions,
    "main thread µs/transaction": ((await mainThreadNs()) - main) / 1_000 / transactions,
    "transactions/s": (transactions * 1_000) / (performance.now() - ms),
    "reads/block": (used.reads - files.reads) / applied,
    "writes/block": (used.writes - files.writes) / applied,
    "kB written/block": (used.bytes - files.bytes) / 1_000 / applied,
  };
  process.stdout.write(`${JSON.stringify(each)}\n`);
});
