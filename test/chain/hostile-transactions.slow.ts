/**
 * Random hostile transactions on both engines: they return the same responses, produce the same blocks, apply each
 * other's blocks and reach the same state. HOSTILE_SEED repeats a run; HOSTILE_BLOCKS sets the number of blocks.
 */
import test from "ava";
import { randomInt } from "node:crypto";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { Chain } from "../../src/chain/chain.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import type { ChainStore } from "../../src/chain/blocks/store.js";
import type { Database } from "../../src/db/queries/database.js";
import { stateIn } from "../../src/node/chain/transaction-executor.js";
import { RpcError } from "../../src/rpc/errors.js";
import { parseVerificationKey } from "../../src/zk/groth16.js";
import { createTreeStore } from "../../src/zk/tree-store.js";
import { openChain } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
import { verificationKeyJson } from "../helpers/chain/groth16.js";
import { createHostileTransactions } from "../helpers/chain/hostile-transactions.js";
import { createChance } from "../helpers/wire/hostile-values.js";
import { readState } from "../helpers/chain/state-digest.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

const authority = testKey(1);
const network = sha256(genesisOf(authority));
const blockCount = Number(process.env["HOSTILE_BLOCKS"] ?? 12);

interface Node {
  readonly name: string;
  readonly database: Database;
  readonly chain: Chain;
  readonly store: ChainStore;
  /** Errors that are not rejections by a rule. */
  readonly unexpected: unknown[];
}

async function openNodes(t: Teardown, role: string, nowMs: () => number, hasProofs: boolean): Promise<Node[]> {
  return await Promise.all(
    engines.names.map(async (engine) => {
      const database = await engines.open(t, engine);
      const unexpected: unknown[] = [];
      const verificationKey = hasProofs ? parseVerificationKey(verificationKeyJson) : undefined;
      const onUnexpected = (error: unknown) => unexpected.push(error);
      const chain = await openChain(database, [authority], { nowMs, verificationKey, onUnexpected });
      return { name: `${role} on ${engine}`, database, chain, store: createChainStore(database, stateIn), unexpected };
    }),
  );
}

/** Submits a transaction. Returns its hash, or the reason and message of the rejection. */
async function submit({ chain, unexpected }: Node, transaction: Transaction): Promise<string> {
  try {
    return await chain.submit(transaction);
  } catch (error) {
    if (!(error instanceof RpcError)) {
      unexpected.push(error);
    }
    return error instanceof RpcError ? `${error.reason}: ${error.message}` : String(error);
  }
}

for (const hasProofs of [false, true]) {
  test(`both engines agree on hostile transactions, ${hasProofs ? "with" : "without"} proofs`, async (t) => {
    const seed = Number(process.env["HOSTILE_SEED"] ?? randomInt(2 ** 31));
    t.log(`HOSTILE_SEED=${seed}`);
    const chance = createChance(seed + 1);
    let timeMs = 1_800_000_000_000;
    const nowMs = (): number => timeMs;
    const producers = await openNodes(t, "the authority", nowMs, hasProofs);
    const followers = await openNodes(t, "the follower", nowMs, hasProofs);
    const nodes = [...producers, ...followers];
    const hostile = createHostileTransactions({ seed, network, authority, nowMs, hasProofs });

    /** Checks that an operation has the same result on all nodes, and returns the result. */
    async function sameOn<T>(compared: readonly Node[], what: string, run: (node: Node) => Promise<T>): Promise<T> {
      const [first, ...others] = await Promise.all(compared.map(run));
      const names = compared.map(({ name }) => name);
      others.forEach((other, i) => t.deepEqual(other, first, `${what}: ${names[i + 1]} and ${names[0]}`));
      return first!;
    }

    /** Produces the next block on each authority. The follower on the other engine applies it. */
    async function produce(what: string): Promise<void> {
      const built = await Promise.all(producers.map(({ chain }) => chain.produceBlock(authority)));
      await sameOn(producers, what, (node) => Promise.resolve(built[producers.indexOf(node)]!.block?.hash));
      await Promise.all(
        built.toReversed().map(async ({ block }, i) => block && (await followers[i]!.chain.apply(block.signed))),
      );
      await sameOn(nodes, what, ({ chain }) => Promise.resolve(chain.head()!.hash));
      const { root } = await sameOn(nodes, what, async ({ database }) => createTreeStore(database.read).root());
      hostile.learnRoot(root);
    }

    const outcomes = { included: 0, rejected: 0, pending: 0, refused: 0 };
    for (let block = 1; block <= blockCount; block++) {
      const results: string[] = [];
      for (let i = 1 + chance.below(30); i > 0; i--) {
        const transaction = hostile.next();
        const bytes = Buffer.from(transaction.body).toString("base64").slice(0, 2_000);
        const result = await sameOn(producers, bytes, (node) => submit(node, transaction));
        results.push(result);
        if (result.startsWith("0x")) {
          hostile.learnTaken(transaction);
        }
      }
      timeMs += chance.pick([0, 1, 250, 2_000, 60_000, 700_000]);
      await produce(`block ${block}`);
      for (const result of results) {
        const info = result.startsWith("0x")
          ? await sameOn(producers, result, ({ store }) => store.transactionStatus(result))
          : undefined;
        outcomes[info?.status ?? "refused"]++;
      }
    }

    t.log(outcomes);
    t.true(outcomes.included > 0 && outcomes.refused > 0, "some are valid, and some are not");

    const honest = hostile.honest();
    const hash = await sameOn(producers, "the honest one", (node) => submit(node, honest));
    while ((await producers[0]!.store.transactionStatus(hash))?.status === "pending") {
      await produce("the honest one");
    }
    t.like(await sameOn(nodes, "the honest one", ({ store }) => store.transactionStatus(hash)), { status: "included" });
    await sameOn(nodes, "state", ({ database }) => readState(database, hostile));
    t.deepEqual(
      nodes.flatMap(({ unexpected }) => unexpected),
      [],
    );
  });
}
