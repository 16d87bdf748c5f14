import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { create } from "@bufbuild/protobuf";
import { BlockSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, ConsensusService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { openDatabase } from "../../src/db/open.js";
import { migrate } from "../../src/db/migrate.js";
import { authorityDirectory, createPublic, genesisOf, openChain, signTransaction, testKey } from "../helpers/chain.js";
import { ask } from "../helpers/plain-client.js";
import { readFailure } from "../helpers/rpc-clients.js";
import { startTestNode, temporaryDirectory } from "../helpers/start-node.js";

const [authority, other, alice] = [testKey(1), testKey(2), testKey(3)];

test("blocks come in by the control service alone", async (t) => {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesisOf(authority, other));
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const internal = createClient(ConsensusService, node.control);
  const open = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));

  const database = await openDatabase(`sqlite:${join(await temporaryDirectory(t), "a.sqlite")}`);
  t.teardown(() => database.close());
  await migrate(database);
  const elsewhere = await openChain(database, [authority, other]);
  const hash = await elsewhere.submit(signTransaction(alice, 1, createPublic("a", "{}")));
  const block = (await elsewhere.seal(other))!;

  const outside = createClient(ConsensusService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  t.is(readFailure(await t.throwsAsync(outside.applyBlock({ block: block.signed }))).code, 12);
  t.is((await ask(node.port, "/gatehouse.chain.v1.ConsensusService/ApplyBlock", { method: "POST" })).status, 404);

  const empty = readFailure(await t.throwsAsync(internal.applyBlock({})));
  t.is(empty.reason, "INVALID_REQUEST");
  const forged = create(BlockSchema, { ...block.signed, signature: new Uint8Array(64) });
  t.is(readFailure(await t.throwsAsync(internal.applyBlock({ block: forged }))).reason, "INVALID_SIGNATURE");

  t.is((await internal.applyBlock({ block: block.signed })).hash, block.hash);
  t.is((await open.getHead({})).hash, block.hash);
  t.like(await open.getTransaction({ hash }), { status: TransactionStatus.INCLUDED, blockNumber: 1n });
  t.is((await ask(node.port, `/storage-program/search?q=a`)).status, 200);
});

test("a node whose key is the single authority makes blocks; one that shares the authority does not", async (t) => {
  for (const [authorities, makes] of [
    [[authority], true],
    [[authority, other], false],
  ] as const) {
    const dir = await authorityDirectory(t, ...authorities);
    const node = await startTestNode(t, { genesis: "genesis.json" }, dir);
    const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
    const { hash } = await client.submitTransaction({
      transaction: signTransaction(alice, 1, createPublic("a", "{}")),
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const { status } = await client.getTransaction({ hash });
    t.is(status, makes ? TransactionStatus.INCLUDED : TransactionStatus.PENDING);
    await node.stop();
    // What was pending or included is so after a restart.
    const again = await startTestNode(t, {}, dir);
    t.is(
      (await createClient(ChainService, createGrpcTransport({ baseUrl: again.rpcUrl })).getTransaction({ hash }))
        .status,
      status,
    );
  }
});
