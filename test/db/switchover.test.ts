/** Servers of PostgreSQL that change places under a node that writes. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/hash.js";
import { readHeader } from "../../src/chain/transaction.js";
import { testKey } from "../helpers/keys.js";
import { type End, type PostgresPair, startPostgresPair } from "../helpers/postgres-pair.js";
import { startNodeProcess } from "../helpers/start-cli.js";
import { authorityDirectory } from "../helpers/start-member.js";
import { createPublic, signTransaction } from "../helpers/transactions.js";
import { until } from "../helpers/until.js";
import { testUnless } from "../helpers/when.js";

const [authority, ...senders] = [1, 2, 3, 4, 5].map(testKey);
const started = await startPostgresPair();
const testPair = testUnless(typeof started === "string" ? started : undefined);
const pair = started as PostgresPair;
testPair.after(() => pair.remove());

const ends: readonly End[] = ["stopped", "stopped", "stopped", "aborted", "killed"];
const changes = 20;
/** Without a block for so long, there comes none. */
const patienceMs = 60_000;

testPair.serial("twenty times the servers change places, and nothing that was told of is lost", async (t) => {
  t.timeout(360_000);
  const dir = await authorityDirectory(t, authority!);
  const database = pair.urls.join(",");
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database]);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  const taken = new Set<string>();
  const told = new Map<bigint, string>();
  const doubled: bigint[] = [];
  let isOver = false;

  /** Submits one transaction after the other, each until it is taken, and waits for a block now and then. */
  async function submitAs(key: (typeof senders)[number]): Promise<void> {
    for (let nonce = 1; !isOver; nonce++) {
      const transaction = signTransaction(key, nonce, createPublic(`p${nonce}`, `{"n":${nonce}}`));
      const hash = sha256(transaction.body);
      while (!isOver && !taken.has(hash)) {
        await client.submitTransaction({ transaction }).then(
          () => taken.add(hash),
          () => sleep(20),
        );
      }
      while (!isOver && nonce % 3 === 0 && !(await isIncluded(hash).catch(() => false))) {
        await sleep(20);
      }
    }
  }

  async function isIncluded(hash: string): Promise<boolean> {
    return (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED;
  }

  /** Looks for new blocks; each number has one hash. */
  async function watchHead(): Promise<void> {
    while (!isOver) {
      const { number, hash } = await client.getHead({});
      if ((told.get(number) ?? hash) !== hash) {
        doubled.push(number);
      }
      if (!told.has(number)) {
        told.set(number, hash);
        lastBlockMs = performance.now();
      }
      await sleep(5);
    }
  }

  let lastBlockMs = performance.now();
  const load = Promise.all([watchHead(), ...senders.map(submitAs)]);
  const withoutMs: number[] = [];
  await until(() => told.size > 3);
  for (let i = 0; i < changes; i++) {
    let longestMs = 0;
    const { size } = told;
    const change = pair.changePlaces(ends[i % ends.length]!);
    const changed = change.then(() => told.size);
    for (let enough = Infinity; told.size < enough && longestMs < patienceMs; await sleep(5)) {
      longestMs = Math.max(longestMs, performance.now() - lastBlockMs);
      enough = await Promise.race([changed.then((sizeThen) => sizeThen + 2), Promise.resolve(Infinity)]);
    }
    await change;
    t.true(told.size > size + 1, `no block after change ${i + 1}: ${node.stderr()}`);
    withoutMs.push(longestMs);
  }
  isOver = true;
  await load;

  await until(async () => {
    const fates = await Promise.all([...taken].map(isIncluded));
    return fates.every((included) => included);
  }, "all that was taken is in blocks");
  t.deepEqual(doubled, []);
  const hashes = new Map<bigint, string>();
  const { genesisHash } = await client.getHead({});
  let previous = genesisHash;
  for await (const { block } of client.listBlocks({ fromNumber: 1n })) {
    const header = readHeader(block!, { network: genesisHash });
    const hash = sha256(block!.header);
    t.is(header.previousHash, previous);
    t.is(header.number, BigInt(hashes.size + 1));
    hashes.set(header.number, hash);
    previous = hash;
  }
  for (const [number, hash] of told) {
    t.is(number === 0n ? hash : hashes.get(number), hash, `block ${number} is the one that was told of`);
  }
  withoutMs.sort((a, b) => a - b);
  const [middle, longest] = [withoutMs[changes / 2]!, withoutMs.at(-1)!].map(Math.round);
  t.log(
    `${taken.size} transactions, ${hashes.size} blocks; without a block for ${middle} ms (p50), ${longest} ms (max)`,
  );
});
