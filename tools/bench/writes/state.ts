/** Measures the cost of committing blocks to the state, and of proofs: their size, creation and verification. */
import { create, toBinary } from "@bufbuild/protobuf";
import { randomInt } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { GetProofRequestSchema, GetProofResponseSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import type { Chain } from "../../../src/chain/chain.js";
import { decodeHeader } from "../../../src/chain/transactions/transaction.js";
import { createChainStore } from "../../../src/chain/chain-store.js";
import type { Database, Queries } from "../../../src/db/queries/database.js";
import { openDatabase } from "../../../src/db/open.js";
import { createCorruptionMonitor } from "../../../src/base/errors/corruption.js";
import { fromHex32 } from "../../../src/base/crypto/hash.js";
import { type State, stateIn } from "../../../src/node/chain/transaction-executor.js";
import { createNodeState } from "../../../src/node/chain/state.js";
import { stateHashes, treeHashes } from "../../../src/tree/node-hashes.js";
import { leadsTo } from "../../../src/tree/path.js";
import { openChain } from "../../../test/helpers/chain/chain.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { startPostgres } from "../../../test/helpers/databases/postgres-server.js";
import { createPublic, signTransaction } from "../../../test/helpers/chain/transactions.js";
import type { BenchSettings, Row } from "../row.js";
import { median, percentile, ratioOfRounds } from "../statistics.js";
import { addressOf, loadPrograms, plantTree } from "../reads/store.js";

const key = testKey(1);
const proofs = 500;

/** Measures both engines. */
export async function benchState(bench: BenchSettings): Promise<Row[]> {
  const file = join(bench.directory, "state.sqlite");
  const rows = await benchEngine(bench, "SQLite", `sqlite:${file}`);
  const { size } = await stat(file);
  rows.push({ name: "SQLite: the file", figures: { "bytes for a program, all in all": size / bench.programs } });
  const server = await startPostgres();
  if (typeof server === "string") {
    return [...rows, { name: "PostgreSQL", figures: {}, note: server }];
  }
  try {
    return [...rows, ...(await benchEngine(bench, "PostgreSQL", await server.createDatabase()))];
  } finally {
    await server.remove();
  }
}

async function benchEngine(bench: BenchSettings, engine: string, url: string): Promise<Row[]> {
  const { programs, rounds, say } = bench;
  await loadPrograms(url, programs, () => key.publicKey);
  const database = await openDatabase(url);
  try {
    const begunMs = performance.now();
    await plantTree(database, programs);
    const treeS = (performance.now() - begunMs) / 1_000;
    const switched = { hasTree: true };
    const chain = await openChain(database, [key], { states: (db) => stateWith(db, switched) });
    // Measure proofs first, because blocks without the tree do not update it.
    await chain.submit(signTransaction(key, ++nonce, createPublic("p", "{}")));
    await chain.produceBlock(key);
    say(`${engine}: proofs`);
    const rows: Row[] = [{ ...(await benchProofs(database, chain, programs)), name: `${engine}: proofs` }];
    for (const changes of [1, 10, 100, 1_000]) {
      say(`${engine}: blocks of ${changes}`);
      rows.push({
        ...(await benchBlocks(chain, switched, { changes, programs, rounds })),
        name: `${engine}: a block of ${changes}`,
      });
    }
    rows.push({
      name: `${engine}: the tree of ${programs.toLocaleString("en")} programs`,
      figures: { "built in s": treeS },
    });
    return rows;
  } finally {
    await database.close();
  }
}

/** State with its tree, or without one. */
function stateWith(db: Queries, { hasTree }: { readonly hasTree: boolean }): State {
  const state = stateIn(db);
  return hasTree
    ? state
    : {
        ...state,
        programs: { ...state.programs, leaves: () => Promise.resolve([]) },
        tree: { change: () => Promise.resolve(Buffer.alloc(32)) },
      };
}

let nonce = 0;

async function benchBlocks(
  chain: Chain,
  switched: { hasTree: boolean },
  { changes, programs, rounds }: { readonly changes: number; readonly programs: number; readonly rounds: number },
): Promise<Omit<Row, "name">> {
  const ms: Record<"with" | "without", { cpu: number[]; wall: number[] }> = {
    with: { cpu: [], wall: [] },
    without: { cpu: [], wall: [] },
  };
  for (let round = 0; round < Math.max(rounds, Math.ceil(100 / changes)); round++) {
    for (const how of ["with", "without"] as const) {
      switched.hasTree = how === "with";
      for (let i = 0; i < changes; i++) {
        const storageAddress = addressOf(randomInt(programs));
        const value = { storageAddress, field: "note", value: `"${nonce}"` };
        await chain.submit(signTransaction(key, ++nonce, { case: "setField", value }));
      }
      const [cpu, wall] = [process.cpuUsage(), performance.now()];
      await chain.produceBlock(key);
      const { user, system } = process.cpuUsage(cpu);
      ms[how].cpu.push((user + system) / 1_000);
      ms[how].wall.push(performance.now() - wall);
    }
  }
  const [cpu, bare] = [median(ms.with.cpu), median(ms.without.cpu)];
  return {
    baseline: "no tree",
    ...ratioOfRounds(ms.without.cpu, ms.with.cpu),
    figures: { "cpu ms": cpu, "cpu ms without": bare, ms: median(ms.with.wall), "ms without": median(ms.without.wall) },
  };
}

async function benchProofs(database: Database, chain: Chain, programs: number): Promise<Omit<Row, "name">> {
  const store = createChainStore(database, stateIn);
  const heads = { latestSignedHead: () => undefined };
  const service = createNodeState(
    { corruption: createCorruptionMonitor(() => undefined) },
    { database, store, chain, heads },
  );
  const call = { caller: { address: "127.0.0.1", identity: key.publicKey }, signal: new AbortController().signal };
  const [sizes, paths, madeMs, checkedMs]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let i = 0; i < proofs; i++) {
    const request = create(GetProofRequestSchema, {
      storageAddress: addressOf(randomInt(programs)),
      fields: ["title"],
    });
    const begun = performance.now();
    const answer = create(GetProofResponseSchema, (await service.getProof(request, call)) as object);
    madeMs.push(performance.now() - begun);
    const { path, state, storageAddress } = answer.program!;
    sizes.push(toBinary(GetProofResponseSchema, answer).length);
    paths.push(path!.siblings.length);
    const { value: program } = state as Extract<typeof state, { case: "program" }>;
    const object = program.document.value as Exclude<typeof program.document.value, Uint8Array | undefined>;
    const [field] = object.fields;
    const from = performance.now();
    const isRight =
      leadsTo(object.fieldsRoot, treeHashes, stateHashes.fieldKey('"title"'), stateHashes.field(field!.field!), {
        siblings: field!.path!.siblings,
        other: undefined,
      }) &&
      leadsTo(
        fromHex32(decodeHeader(answer.header).stateRoot),
        treeHashes,
        stateHashes.programKey(storageAddress),
        stateHashes.program({ ...program, documentHash: stateHashes.objectDocument(object) }),
        { siblings: path!.siblings, other: undefined },
      );
    checkedMs.push(performance.now() - from);
    if (!isRight) {
      throw new Error(`The proof of ${storageAddress} proves nothing.`);
    }
  }
  return {
    figures: {
      "bytes of a path": median(paths),
      "bytes of a path p99": percentile(
        paths.toSorted((a, b) => a - b),
        0.99,
      ),
      "bytes of an answer with a field": median(sizes),
      "made in ms": median(madeMs),
      "checked in ms": median(checkedMs),
    },
  };
}
