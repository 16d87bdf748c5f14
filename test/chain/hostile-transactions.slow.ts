/**
 * Whatever a stranger signs, both engines say the same, make the same block of it, take each other's, hold the same state
 * afterwards, and go on. HOSTILE_SEED repeats a run; HOSTILE_BLOCKS makes it longer.
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
import { genesisOf } from "../helpers/chain/genesis.js";
import { verificationKeyJson } from "../helpers/chain/groth16.js";
import { createHostileTransactions } from "../helpers/chain/hostile-transactions.js";
import { createChance } from "../helpers/wire/hostile-values.js";
import { testKey } from "../helpers/chain/keys.js";
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
  /** What no rule said. */
  readonly unexpected: unknown[];
}

async function openNodes(t: Teardown, role: string, nowMs: () => number, hasProofs: boolean): Promise<Node[]> {
  return await Promise.all(
    engines.names.map(async (engine) => {
      const database = await engines.open(t, engine);
      const unexpected: unknown[] = [];
      const key = hasProofs ? parseVerificationKey(verificationKeyJson) : undefined;
      const chain = await openChain(database, [authority], nowMs, key, (error) => unexpected.push(error));
      return { name: `${role} on ${engine}`, database, chain, store: createChainStore(database, stateIn), unexpected };
    }),
  );
}

/** What a node says to a transaction: its hash, or why not. */
async function say({ chain, unexpected }: Node, transaction: Transaction): Promise<string> {
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
  test(`hostile transactions, ${hasProofs ? "with" : "without"} a key for proofs`, async (t) => {
    const seed = Number(process.env["HOSTILE_SEED"] ?? randomInt(2 ** 31));
    t.log(`HOSTILE_SEED=${seed}`);
    const chance = createChance(seed + 1);
    let now = 1_800_000_000_000;
    const nowMs = (): number => now;
    const sealers = await openNodes(t, "the authority", nowMs, hasProofs);
    const followers = await openNodes(t, "the follower", nowMs, hasProofs);
    const nodes = [...sealers, ...followers];
    const hostile = createHostileTransactions({ seed, network, authority, nowMs, hasProofs });

    /** All nodes say the same, of which that of the first is given. */
    async function agree<T>(asked: readonly Node[], what: string, ask: (node: Node) => Promise<T>): Promise<T> {
      const [first, ...others] = await Promise.all(asked.map(ask));
      others.forEach((other, i) => t.deepEqual(other, first, `${what}: ${asked[i + 1]!.name} and ${asked[0]!.name}`));
      return first!;
    }

    /** Makes the next block with each authority, and has it applied by the follower on the other engine. */
    async function seal(what: string): Promise<void> {
      const made = await Promise.all(sealers.map(({ chain }) => chain.produceBlock(authority)));
      await agree(sealers, what, (node) => Promise.resolve(made[sealers.indexOf(node)]!.block?.hash));
      await Promise.all(
        made.toReversed().map(async ({ block }, i) => block && (await followers[i]!.chain.apply(block.signed))),
      );
      await agree(nodes, what, ({ chain }) => Promise.resolve(chain.head()!.hash));
      const { root } = await agree(nodes, what, async ({ database }) => createTreeStore(database.read).root());
      hostile.learnRoot(root);
    }

    const outcomes = { included: 0, rejected: 0, pending: 0, refused: 0 };
    for (let block = 1; block <= blockCount; block++) {
      const said: string[] = [];
      for (let i = 1 + chance.below(30); i > 0; i--) {
        const transaction = hostile.next();
        const bytes = Buffer.from(transaction.body).toString("base64").slice(0, 2_000);
        const answer = await agree(sealers, bytes, (node) => say(node, transaction));
        said.push(answer);
        if (answer.startsWith("0x")) {
          hostile.learnTaken(transaction);
        }
      }
      now += chance.pick([0, 1, 250, 2_000, 60_000, 700_000]);
      await seal(`block ${block}`);
      for (const one of said) {
        const fate = one.startsWith("0x")
          ? await agree(sealers, one, ({ store }) => store.transactionStatus(one))
          : undefined;
        outcomes[fate?.status ?? "refused"]++;
      }
    }

    t.log(outcomes);
    t.true(outcomes.included > 0 && outcomes.refused > 0, "some are good, and some are not");

    const honest = hostile.honest();
    const hash = await agree(sealers, "the honest one", (node) => say(node, honest));
    while ((await sealers[0]!.store.transactionStatus(hash))?.status === "pending") {
      await seal("the honest one");
    }
    t.like(await agree(nodes, "the honest one", ({ store }) => store.transactionStatus(hash)), { status: "included" });
    await agree(nodes, "state", ({ database }) => readState(database, hostile));
    t.deepEqual(
      nodes.flatMap(({ unexpected }) => unexpected),
      [],
    );
  });
}
