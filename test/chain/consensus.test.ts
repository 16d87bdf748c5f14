import { networkOf } from "../helpers/nodes/network.js";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { create } from "@bufbuild/protobuf";
import { BlockSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ConsensusService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { openDatabase } from "../../src/db/open.js";
import { migrate } from "../../src/node/migrations/migrate.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { chainClient, newProgram } from "../helpers/chain/submit.js";
import { openChain } from "../helpers/chain/chain.js";
import { readSignedHead, signedHead } from "../helpers/chain/heads.js";
import { genesisOf, type TestKey, testKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const [authority, other, alice] = [testKey(1), testKey(2), testKey(3)];

test("only the control socket accepts blocks and signed heads", async (t) => {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesisOf(authority, other));
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const internal = createClient(ConsensusService, node.control);
  const publicChain = chainClient(node);

  const database = await openDatabase(`sqlite:${join(await temporaryDirectory(t), "a.sqlite")}`);
  t.teardown(() => database.close());
  await migrate(database);
  const elsewhere = await openChain(database, [authority, other]);
  const { genesisHash: network } = networkOf(authority, other);
  const hash = await elsewhere.submit(newProgram(alice, 1, "{}", { network }));
  const block = (await elsewhere.produceBlock(other)).block!;

  const onPublicPort = createClient(ConsensusService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  t.is(readFailure(await t.throwsAsync(onPublicPort.applyBlock({ block: block.signed }))).code, 12);
  t.is((await ask(node.port, "/gatehouse.chain.v1.ConsensusService/ApplyBlock", { method: "POST" })).status, 404);

  const empty = readFailure(await t.throwsAsync(internal.applyBlock({})));
  t.is(empty.reason, "INVALID_REQUEST");
  const forged = create(BlockSchema, { ...block.signed, signature: new Uint8Array(64) });
  t.is(readFailure(await t.throwsAsync(internal.applyBlock({ block: forged }))).reason, "INVALID_SIGNATURE");

  t.is((await internal.applyBlock({ block: block.signed })).hash, block.hash);
  t.is((await publicChain.getHead({})).hash, block.hash);
  t.like(await publicChain.getTransaction({ hash }), { status: TransactionStatus.INCLUDED, blockNumber: 1n });
  t.is((await ask(node.port, `/storage-program/search?q=p`)).status, 200);

  // A node of several authorities does not sign heads by itself.
  const statement = { number: 1n, hash: block.hash, genesisHash: network, timestampMs: BigInt(Date.now()) };
  t.is((await publicChain.getHead({})).head, undefined);
  for (const [head, reason, message] of [
    [undefined, "INVALID_REQUEST", /must hold a signed head/],
    [
      signedHead(other, { ...statement, number: 0n, hash: network }),
      "INVALID_REQUEST",
      /The latest block is another one/,
    ],
    [
      signedHead(other, { ...statement, timestampMs: statement.timestampMs + 90_000n }),
      "INVALID_REQUEST",
      /in the future/,
    ],
    [signedHead(other, { ...statement, timestampMs: 1n }), "INVALID_REQUEST", /before that of its block/],
    [signedHead(other, { ...statement, genesisHash: block.hash }), "INVALID_REQUEST", /for another network/],
    [signedHead(alice, statement), "INVALID_SIGNATURE", /not from an authority/],
    [signedHead(alice, { ...statement, proposer: other.publicKey }), "INVALID_SIGNATURE", /not signed by its proposer/],
  ] as const) {
    const failure = readFailure(await t.throwsAsync(internal.reportHead(head === undefined ? {} : { head })));
    t.is(failure.reason, reason);
    t.regex(failure.message, message);
  }
  t.is((await publicChain.getHead({})).head, undefined);
  const reported = signedHead(authority, statement);
  await internal.reportHead({ head: reported });
  const { head } = await publicChain.getHead({});
  t.deepEqual(readSignedHead(head!), readSignedHead(reported));
  // A signed head with the same time does not replace it.
  await internal.reportHead({ head: signedHead(other, statement) });
  t.deepEqual((await publicChain.getHead({})).head, head);
});

interface HealthJson {
  readonly subsystems: { readonly chain: { readonly status: string; readonly lastError: { message: string } | null } };
}

/** Starts a node with the key of the first authority, and returns functions that submit transactions to it. */
async function startAuthority(t: Teardown, ...authorities: readonly TestKey[]) {
  const dir = await authorityDirectory(t, ...authorities);
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const client = chainClient(node);
  const statusOf = async (hash: string) => (await client.getTransaction({ hash })).status;
  const submit = async (nonce: number): Promise<string> => {
    const { genesisHash: network } = networkOf(...authorities);
    return (await client.submitTransaction({ transaction: newProgram(alice, nonce, "{}", { network }) })).hash;
  };
  return { node, dir, submit, statusOf };
}

test("a node produces blocks if its key is the only authority, but not if there are others", async (t) => {
  const sharing = await startAuthority(t, authority, other);
  // No process would produce a block with the transaction. The response, the log and /health say so.
  const refusal = readFailure(await t.throwsAsync(sharing.submit(1)));
  t.is(refusal.reason, "STATE_NOT_READY");
  t.regex(refusal.message, /has 2 authorities, .* no consensus process reports/);
  t.deepEqual(sharing.node.warnings, [refusal.message]);
  const { chain } = (await askJson<HealthJson>(sharing.node.port, "/health")).subsystems;
  t.like(chain, { status: "failed", lastError: { message: refusal.message } });
  await createClient(ControlService, sharing.node.control).reportSubsystem({
    name: "chain",
    status: SubsystemStatus.READY,
    leaseS: 3600,
  });
  t.is((await askJson<HealthJson>(sharing.node.port, "/health")).subsystems.chain.status, "ready");
  const waiting = await sharing.submit(1);
  // The other node started earlier, so it would have produced a block by now.
  const alone = await startAuthority(t, authority);
  let included = "";
  for (const nonce of [1, 2]) {
    included = await alone.submit(nonce);
    await until(async () => (await alone.statusOf(included)) === TransactionStatus.INCLUDED);
  }
  t.is(await sharing.statusOf(waiting), TransactionStatus.PENDING);

  for (const [{ node, dir }, hash, status] of [
    [alone, included, TransactionStatus.INCLUDED],
    [sharing, waiting, TransactionStatus.PENDING],
  ] as const) {
    await node.stop();
    const restarted = await startTestNode(t, {}, dir);
    const client = chainClient(restarted);
    t.is((await client.getTransaction({ hash })).status, status, "after a restart");
  }
});
