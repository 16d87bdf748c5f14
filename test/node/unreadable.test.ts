/**
 * A program that a caller may not read is not there for him: every door is asked for one of a rule, and for one that there
 * never was, and the answers are compared.
 */
import anyTest, { type ExecutionContext, type TestFn } from "ava";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../src/base/program-address.js";
import { callerOf } from "../helpers/process/caller.js";
import { publicDoors, type Said } from "../helpers/wire/doors.js";
import { listen } from "../helpers/wire/events.js";
import { connectGrpc, type TestGrpcClient } from "../helpers/wire/grpc-client.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { startMember } from "../helpers/nodes/start-member.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
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
/** May change a program, and not read it. */
const writer = testKey(22);
const enemy = testKey(23);
const stranger = testKey(24);
const data = { data: { case: "json" as const, value: '{"field":[1]}' } };
const create = (programName: string, access: object): Operation => ({
  case: "createProgram",
  value: { programName, data, access },
});
const rules: Readonly<Record<string, object>> = {
  "its owner's alone": { mode: AccessMode.OWNER },
  "of few readers": {
    mode: AccessMode.RESTRICTED,
    allowed: [reader.publicKey],
    groups: { pens: { members: [writer.publicKey], permissions: [AccessPermission.WRITE] } },
  },
};
/** The names have the same length, so that nothing else differs. */
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
      value: { storageAddress: open, access: { mode: AccessMode.PUBLIC, blacklisted: [enemy.publicKey] } },
    } as Operation,
  ];
  for (const [i, operation] of operations.entries()) {
    t.is((await fateOf(t, owner, i + 1, operation)).status, TransactionStatus.INCLUDED, String(i));
  }
});

/** What becomes of a transaction, or the reason why it is not taken. */
async function fateOf(
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
  const fate = () => client.call(ChainService.method.getTransaction, { hash });
  await until(async () => (await fate()).status !== TransactionStatus.PENDING);
  const { status, reason } = await fate();
  return { status, reason };
}

/** What was said of a program, without what differs from request to request, and without its names. */
function masked(said: readonly Said[], address: string, name: string): string[] {
  const hide = (text: string): string =>
    text
      .replaceAll(address, "ADDRESS")
      .replaceAll(name, "NAME")
      .replaceAll(/"(x-request-id|requestId|date|connection|grpc-status-details-bin)"[:,]\[?"[^"]*"\]?/g, "")
      // Details of errors in bytes, which hold the id of the request.
      .replaceAll(/\[(?:\d+,)*\d+\]/g, "[]");
  return (
    said
      .filter(({ request }) => request.includes(address) || request.includes(name) || request.includes(absentName))
      // Proofs are of the tree, in which nothing can be hidden: docs/decisions/0040-unreadable-programs.md.
      .filter(({ door, request }) => !/getproof|\/state\/proof/i.test(`${door} ${request}`))
      // How much a stream says in a while is another matter; those of events are asked below.
      .filter(
        ({ door, request }) => !/ Watch| ListBlocks| ServerReflectionInfo|^plain \/events/.test(`${door} ${request}`),
      )
      .map(({ request, bytes }) => hide(`${request}\n${bytes.toString("latin1")}`))
      .sort()
  );
}

for (const [i, rule] of Object.keys(rules).entries()) {
  for (const [door, walk] of Object.entries(publicDoors).filter(([name]) => name !== "metrics")) {
    test.serial(`${door}: a program ${rule} and one that never was are one answer to strangers`, async (t) => {
      const { node } = t.context;
      const callers = door === "plain" || door === "JSON-RPC" ? [{}, callerOf(stranger).headers()] : [{}];
      for (const headers of callers) {
        const walkFor = async (address: string, name: string) =>
          masked(await walk(t, node, { texts: [address, name], numbers: [1] }, headers), address, name);
        const [there, never] = [await walkFor(addressOf(i), nameOf(i)), await walkFor(absent, absentName)];
        t.true(there.length > 10, String(there.length));
        t.is(there.length, never.length);
        t.deepEqual(there.filter((answer, nth) => answer !== never[nth]).slice(0, 2), []);
      }
    });
  }
}

test.serial("events of it are those of none", async (t) => {
  const { port } = t.context.node;
  for (const headers of [{}, callerOf(stranger).headers()]) {
    const heard = async (address: string): Promise<unknown> => {
      const listener = await listen(port, `?fromBlock=1&addresses=${address}`, headers);
      const events = await listener.takeTo(4);
      listener.end();
      return events;
    };
    t.deepEqual(await heard(absent), []);
    t.deepEqual(await heard(addressOf(0)), []);
    t.deepEqual(await heard(addressOf(1)), []);
  }
  const own = await listen(port, `?fromBlock=1&addresses=${addressOf(0)}`, callerOf(owner).headers());
  t.true((await own.take(1)).length > 0);
  own.end();
});

test.serial("who may read it reads it, and who is kept out of what everybody sees is told so", async (t) => {
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
    t.is(await status(`${open}${route}`, enemy), 403, route);
  }
  // What an anonymous caller can do about it.
  t.regex((await ask(port, `/storage-program/${absent}`)).text, /NOT_FOUND/);
  t.regex((await ask(port, `/storage-program/${absent}`)).text, /sign.*identity, timestamp \(ms\), network/);
});

test.serial("a sender who may not know of a program learns nothing by changing it", async (t) => {
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
    const never = await fateOf(t, stranger, nonce++, change(absent));
    t.is(never.status, TransactionStatus.REJECTED);
    for (const i of Object.keys(rules).keys()) {
      t.deepEqual(await fateOf(t, stranger, nonce++, change(addressOf(i))), never);
    }
    t.regex((await fateOf(t, stranger, nonce++, change(open))).reason ?? "", /may not change|Only the owner/);
  }
  const write: Operation = { case: "setField", value: { storageAddress: addressOf(1), field: "a", value: "1" } };
  t.like(await fateOf(t, writer, 1, write), { status: TransactionStatus.INCLUDED });
});
