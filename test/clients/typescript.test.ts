/** The package's own client, imported as somebody else would. */
import test from "ava";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectGatehouse } from "gatehouse/client";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { signTransaction, startMember, testKey } from "../helpers/chain.js";
import { until } from "../helpers/until.js";

for (const protocol of ["connect", "grpc"] as const) {
  test(`it calls every service, and proves who calls (${protocol})`, async (t) => {
    const node = await startMember(t);
    const alice = testKey(90);
    const anonymous = connectGatehouse(node.rpcUrl, { protocol, timeoutMs: 10_000 });
    const client = connectGatehouse(node.rpcUrl, { protocol, identity: alice, timeoutMs: 10_000 });
    t.is((await client.info.getVersion({})).version, "0.1.0");
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
    t.is(first.value?.snapshot?.version, "0.1.0");
    enough.abort();
    await t.throwsAsync(async () => await watching.next(), { instanceOf: ConnectError });
  });
}
