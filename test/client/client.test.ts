/** The package's own client, imported as somebody else would. */
import test from "ava";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectGatehouse, Reason, reasonOf } from "gatehouse/client";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { signTransaction } from "../helpers/transactions.js";
import { startMember } from "../helpers/start-member.js";
import { testKey } from "../helpers/keys.js";
import { until } from "../helpers/until.js";

for (const protocol of ["connect", "grpc"] as const) {
  test(`it calls every service, and proves who calls (${protocol})`, async (t) => {
    const node = await startMember(t);
    const alice = testKey(90);
    const anonymous = connectGatehouse(node.rpcUrl, { protocol, timeoutMs: 10_000 });
    const client = connectGatehouse(node.rpcUrl, { protocol, identity: alice, timeoutMs: 10_000 });
    t.is((await client.info.getVersion({})).version, "0.2.0");
    t.true((await client.health.getHealth({})).snapshot?.accepting);
    const transaction = signTransaction(alice, 1, {
      case: "createProgram",
      value: {
        programName: "diary",
        data: { data: { case: "json", value: '{"day":1}' } },
        access: { mode: AccessMode.OWNER },
      },
    });
    await client.chain.submitTransaction({ transaction });
    await until(async () => (await client.chain.getHead({})).number === 1n);
    const { programs } = await client.storage.listProgramsByOwner({ owner: alice.publicKey });
    const { storageAddress } = programs[0]!;
    t.is((await client.storage.getProgramData({ storageAddress })).data, '{"day":1}');
    const refused = await t.throwsAsync(anonymous.storage.getProgramData({ storageAddress }), {
      instanceOf: ConnectError,
    });
    t.is(refused.code, Code.PermissionDenied);
    t.regex((await client.zk.getMerkleRoot({})).rootHash, /^0x/);
    const enough = new AbortController();
    const watching = client.health.watchHealth({}, { signal: enough.signal })[Symbol.asyncIterator]();
    const first = (await watching.next()) as IteratorResult<
      { readonly snapshot?: { readonly version: string } },
      undefined
    >;
    t.is(first.value?.snapshot?.version, "0.2.0");
    enough.abort();
    await t.throwsAsync(async () => await watching.next(), { instanceOf: ConnectError });
  });
}

for (const protocol of ["connect", "grpc"] as const) {
  test(`it proves who calls on one network, and on no other (${protocol})`, async (t) => {
    const node = await startMember(t, { "identity-form": "network" });
    const identity = testKey(91);
    const options = { protocol, identity, timeoutMs: 10_000 };
    const network = (await connectGatehouse(node.rpcUrl, { protocol }).chain.getHead({})).genesisHash;
    t.is((await connectGatehouse(node.rpcUrl, { ...options, network }).info.getVersion({})).version, "0.2.0");
    for (const wrong of [options, { ...options, network: `0x${"1".repeat(64)}` }]) {
      const refused = await t.throwsAsync(connectGatehouse(node.rpcUrl, wrong).info.getVersion({}));
      t.is(reasonOf(refused), Reason.INVALID_SIGNATURE);
    }
  });
}

test("it knows the reason of a failure, and that an error which tells of none has none", async (t) => {
  const node = await startMember(t);
  for (const protocol of ["connect", "grpc"] as const) {
    const { chain, storage } = connectGatehouse(node.rpcUrl, { protocol, timeoutMs: 10_000 });
    t.is(reasonOf(await t.throwsAsync(chain.getBlock({ number: 99n }))), Reason.NOT_FOUND);
    t.is(reasonOf(await t.throwsAsync(storage.getProgram({ storageAddress: "x" }))), Reason.INVALID_REQUEST);
  }
  const nobody = connectGatehouse("http://127.0.0.1:9", { timeoutMs: 10_000 });
  t.is(reasonOf(await t.throwsAsync(nobody.info.getVersion({}))), Reason.UNSPECIFIED);
  t.is(reasonOf(new Error("no failure of a node")), Reason.UNSPECIFIED);
  for (const [reason, domain] of [
    ["NOT_FOUND", "elsewhere.test"],
    ["NEWER_THAN_THIS", "gatehouse"],
    ["toString", "gatehouse"],
    ["9", "gatehouse"],
  ]) {
    const error = new ConnectError("No.", Code.NotFound, undefined, [
      { desc: ErrorInfoSchema, value: { reason, domain } },
    ]);
    t.is(reasonOf(error), Reason.UNSPECIFIED, reason);
  }
});
