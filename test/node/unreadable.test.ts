/**
 * A program that a caller may not read looks like a missing one. Every API gets the same requests for a hidden program
 * and for one that never existed, and the responses are compared.
 */
import anyTest, { type ExecutionContext, type TestFn } from "ava";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../src/base/program-address.js";
import { callerOf } from "../helpers/process/caller.js";
import { publicApis, type RecordedResponse } from "../helpers/wire/doors.js";
import { listen } from "../helpers/wire/events.js";
import { connectGrpc, type TestGrpcClient } from "../helpers/wire/grpc-client.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { createPublic, type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

interface Context {
  readonly node: TestNode;
  readonly client: TestGrpcClient;
}
const test = anyTest as TestFn<Context>;

const owner = testKey(20);
const reader = testKey(21);
/** May change a program, but not read it. */
const writer = testKey(22);
const blacklisted = testKey(23);
const stranger = testKey(24);
const data = { data: { case: "json" as const, value: '{"field":[1]}' } };
const create = (programName: string, access: object): Operation => ({
  case: "createProgram",
  value: { programName, data, access },
});
const rules: Readonly<Record<string, object>> = {
  "for its owner only": { mode: AccessMode.OWNER },
  "for listed readers": {
    mode: AccessMode.RESTRICTED,
    allowed: [reader.publicKey],
    groups: { pens: { members: [writer.publicKey], permissions: [AccessPermission.WRITE] } },
  },
};
/** All names have the same length, so that responses have the same size. */
const nameOf = (i: number): string => `hidden-notes-${i}`;
const absentName = "absent-notes-9";
const addressOf = (i: number): string => programAddress(owner.publicKey, nameOf(i), BigInt(i + 1), "");
const absent = programAddress(owner.publicKey, absentName, 9n, "");
const open = programAddress(owner.publicKey, "open notes", 3n, "");

const teardown = fileTeardown();
test.before(async (t) => {
  const node = await startMember(teardown, { "mcp-enabled": true, "mcp-port": "0", "metrics-enabled": false });
  const client = connectGrpc(node.port);
  teardown.teardown(() => client.close());
  Object.assign(t.context, { node, client });
  const operations = [
    ...Object.values(rules).map((access, i) => create(nameOf(i), access)),
    createPublic("open notes", "{}"),
    {
      case: "updateAccess",
      value: { storageAddress: open, access: { mode: AccessMode.PUBLIC, blacklisted: [blacklisted.publicKey] } },
    } as Operation,
  ];
  for (const [i, operation] of operations.entries()) {
    t.is((await submitAs(t, owner, i + 1, operation)).status, TransactionStatus.INCLUDED, String(i));
  }
});

/** Submits a transaction, and returns its outcome; REJECTED also for an error on submission. */
async function submitAs(
  { context: { client } }: Pick<ExecutionContext<Context>, "context">,
  sender: TestKey,
  nonce: number,
  operation: Operation,
): Promise<{ readonly status: TransactionStatus; readonly reason: string | undefined }> {
  const transaction = signTransaction(sender, nonce, operation);
  let hash: string;
  try {
    ({ hash } = await client.call(ChainService.method.submitTransaction, { transaction }));
  } catch (error) {
    return { status: TransactionStatus.REJECTED, reason: readFailure(error).message };
  }
  const read = () => client.call(ChainService.method.getTransaction, { hash });
  await until(async () => (await read()).status !== TransactionStatus.PENDING);
  const { status, reason } = await read();
  return { status, reason };
}

/** The responses about a program, without its names and the values that differ between requests. */
function mask(responses: readonly RecordedResponse[], address: string, name: string): string[] {
  const hide = (text: string): string =>
    text
      .replaceAll(address, "ADDRESS")
      .replaceAll(name, "NAME")
      .replaceAll(/"(x-request-id|requestId|date|connection|grpc-status-details-bin)"[:,]\[?"[^"]*"\]?/g, "")
      // Error details in bytes, which contain the request id.
      .replaceAll(/\[(?:\d+,)*\d+\]/g, "[]");
  return (
    responses
      .filter(({ request }) => request.includes(address) || request.includes(name) || request.includes(absentName))
      // Proofs of the state tree show every address: docs/decisions/0040-unreadable-programs.md.
      .filter(({ api, request }) => !/getproof|\/state\/proof/i.test(`${api} ${request}`))
      // The number of messages of a stream depends on time. Events have their own test below.
      .filter(
        ({ api, request }) => !/ Watch| ListBlocks| ServerReflectionInfo|^plain \/events/.test(`${api} ${request}`),
      )
      .map(({ request, bytes }) => hide(`${request}\n${bytes.toString("latin1")}`))
      .sort()
  );
}

for (const [i, rule] of Object.keys(rules).entries()) {
  for (const [api, crawl] of Object.entries(publicApis).filter(([name]) => name !== "metrics")) {
    test.serial(`${api}: strangers get the same responses for a program ${rule} as for a missing one`, async (t) => {
      const { node } = t.context;
      const callers = api === "plain" || api === "JSON-RPC" ? [{}, callerOf(stranger).headers()] : [{}];
      for (const headers of callers) {
        const crawlFor = async (address: string, name: string) =>
          mask(await crawl(t, node, { texts: [address, name], numbers: [1] }, headers), address, name);
        const [hidden, missing] = [await crawlFor(addressOf(i), nameOf(i)), await crawlFor(absent, absentName)];
        t.true(hidden.length > 10, String(hidden.length));
        t.is(hidden.length, missing.length);
        t.deepEqual(hidden.filter((response, nth) => response !== missing[nth]).slice(0, 2), []);
      }
    });
  }
}

test.serial("strangers get no events of a hidden program", async (t) => {
  const { port } = t.context.node;
  for (const headers of [{}, callerOf(stranger).headers()]) {
    const eventsOf = async (address: string): Promise<unknown> => {
      const listener = await listen(port, `?fromBlock=1&addresses=${address}`, headers);
      const events = await listener.takeTo(4);
      listener.end();
      return events;
    };
    t.deepEqual(await eventsOf(absent), []);
    t.deepEqual(await eventsOf(addressOf(0)), []);
    t.deepEqual(await eventsOf(addressOf(1)), []);
  }
  const own = await listen(port, `?fromBlock=1&addresses=${addressOf(0)}`, callerOf(owner).headers());
  t.true((await own.take(1)).length > 0);
  own.end();
});

test.serial("readers get a program, and a blacklisted caller gets 403 for a public one", async (t) => {
  const { port } = t.context.node;
  const status = async (address: string, key?: TestKey): Promise<number> =>
    (await ask(port, `/storage-program/${address}`, { headers: key === undefined ? {} : callerOf(key).headers() }))
      .status;
  t.is(await status(addressOf(0), owner), 200);
  t.is(await status(addressOf(0), reader), 404);
  t.is(await status(addressOf(0)), 404);
  t.is(await status(addressOf(1), reader), 200);
  t.is(await status(addressOf(1), writer), 404);
  t.is(await status(open), 200);
  const routes = ["", "/all", "/fields", "/field/a", "/field/a/item/0", "/has/a", "/type/a", "/history"];
  for (const route of routes) {
    t.is(await status(`${open}${route}`, blacklisted), 403, route);
  }
  // The error tells an anonymous caller how to sign.
  t.regex((await ask(port, `/storage-program/${absent}`)).text, /NOT_FOUND/);
  t.regex((await ask(port, `/storage-program/${absent}`)).text, /sign.*identity, timestamp \(ms\), network/);
});

test.serial("a sender learns nothing about a hidden program from the rejection of a change", async (t) => {
  let nonce = 1;
  for (const change of [
    (storageAddress: string): Operation => ({ case: "setField", value: { storageAddress, field: "a", value: "1" } }),
    (storageAddress: string): Operation => ({ case: "writeProgram", value: { storageAddress, data } }),
    (storageAddress: string): Operation => ({
      case: "updateAccess",
      value: { storageAddress, access: { mode: AccessMode.PUBLIC } },
    }),
    (storageAddress: string): Operation => ({ case: "deleteProgram", value: { storageAddress } }),
  ]) {
    const missing = await submitAs(t, stranger, nonce++, change(absent));
    t.is(missing.status, TransactionStatus.REJECTED);
    for (const i of Object.keys(rules).keys()) {
      t.deepEqual(await submitAs(t, stranger, nonce++, change(addressOf(i))), missing);
    }
    t.regex((await submitAs(t, stranger, nonce++, change(open))).reason ?? "", /may not change|Only the owner/);
  }
  const write: Operation = { case: "setField", value: { storageAddress: addressOf(1), field: "a", value: "1" } };
  t.like(await submitAs(t, writer, 1, write), { status: TransactionStatus.INCLUDED });
});
