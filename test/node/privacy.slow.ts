/**
 * What private means, at every door: a stranger reads all that can be read, and all of it is searched for what is in
 * private programs. The owner, who does the same, finds it: so the search can find.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type ServiceError, status } from "@grpc/grpc-js";
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Block, BlockHeaderSchema, type Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { callerOf } from "../helpers/process/caller.js";
import { type Doors, publicDoors, type Said, walkInternalPort } from "../helpers/wire/doors.js";
import { connectGrpc, type TestGrpcClient } from "../helpers/wire/grpc-client.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import type { Known } from "../helpers/wire/known-requests.js";
import { createMarkers, formsOf, type Markers } from "../helpers/process/markers.js";
import { networkOf, startMemberOf, startProcessOf } from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { type People, type PrivatePrograms, privatePrograms, type Step } from "../helpers/chain/private-programs.js";
import { silentPeer } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const people: People = { owner: testKey(20), reader: testKey(21), member: testKey(22), stranger: testKey(23) };
const { genesis } = networkOf(authority);

/** A node that logs and shows all that it can. */
async function startShowing(t: Teardown, flags: Readonly<Record<string, string | boolean>>) {
  const traces: Buffer[] = [];
  const collector = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => traces.push(chunk));
    request.on("end", () => response.end("{}"));
  }).listen(0, "127.0.0.1");
  await once(collector, "listening");
  t.teardown(() => collector.close());
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const shown = {
    "metrics-enabled": true,
    "metrics-port": "0",
    "mcp-enabled": true,
    "mcp-port": "0",
    "log-level": "trace",
  };
  const node = await startProcessOf(t, {
    ...{ key: authority, genesis, seeds: [silentPeer] },
    flags: { ...shown, "otlp-endpoint": endpoint, ...flags },
  });
  const kept = (): Said[] => [
    { door: "log", request: "", bytes: Buffer.from(node.stderr()) },
    { door: "traces", request: "", bytes: Buffer.concat(traces) },
  ];
  return { node, kept };
}

/** What became of some steps. */
interface Taken {
  /** Hashes of all that was not refused at once. */
  readonly hashes: readonly string[];
  /** Names of the markers that are in blocks. */
  readonly included: ReadonlySet<string>;
  /** What senders were told of what was refused at once. */
  readonly said: readonly Said[];
}

/** Submits a transaction, again where a busy node says that it has too much to do. */
async function submit(client: TestGrpcClient, transaction: Transaction): Promise<string> {
  for (;;) {
    try {
      return (await client.call(ChainService.method.submitTransaction, { transaction })).hash;
    } catch (error) {
      if ((error as ServiceError).code !== status.UNAVAILABLE) {
        throw error;
      }
      await sleep(500);
    }
  }
}

/** Submits steps, and waits for what becomes of them; those of one sender in a row may be in one block. */
async function takeAll(
  t: ExecutionContext,
  client: TestGrpcClient,
  steps: readonly Step[],
  markers: Markers,
): Promise<Taken> {
  const said: Said[] = [];
  const hashes: string[] = [];
  const included = new Set<string>();
  const fateOf = async (hash: string) => (await client.call(ChainService.method.getTransaction, { hash })).status;
  for (const [i, { sender, nonce, operation, isRejected }] of steps.entries()) {
    const last = hashes.at(-1);
    if (last !== undefined && steps[i - 1]!.sender !== sender) {
      await until(async () => (await fateOf(last)) !== TransactionStatus.PENDING);
    }
    const transaction = signTransaction(sender, nonce, operation);
    if (!isRejected) {
      markers.findIn(Buffer.from(transaction.body)).forEach((name) => included.add(name));
    }
    try {
      hashes.push(await submit(client, transaction));
    } catch (error) {
      t.true(isRejected, `${operation.case}: ${String(error)}`);
      said.push({ door: "submission", request: String(operation.case), bytes: Buffer.from(String(error)) });
    }
  }
  for (const hash of hashes) {
    await until(async () => (await fateOf(hash)) !== TransactionStatus.PENDING);
  }
  const fates = await Promise.all(hashes.map(fateOf));
  const count = (status: TransactionStatus): number => fates.filter((fate) => fate === status).length;
  t.is(count(TransactionStatus.INCLUDED), steps.filter(({ isRejected }) => !isRejected).length);
  t.is(count(TransactionStatus.REJECTED) + said.length, steps.filter(({ isRejected }) => isRejected).length);
  return { hashes, included, said };
}

/** What a stranger can know of a chain, who asks for heads, pending transactions and blocks: hashes, and all addresses. */
async function learn(
  { port }: Doors,
  { addresses }: PrivatePrograms,
  hashes: readonly string[],
  markers: Markers,
): Promise<Known> {
  const { number, hash } = await askJson<{ number: number; hash: string }>(port, "/chain/head");
  return {
    texts: [...addresses, hash, people.owner.publicKey, markers.beginning, ...hashes],
    numbers: Array.from({ length: number + 2 }, (_, i) => i),
  };
}

/** Where markers were found. */
const findIn = (markers: Markers, said: readonly Said[]): string[] =>
  said.flatMap(({ door, request, bytes }) =>
    markers.findIn(bytes).map((name) => `${name}: ${door} ${request.slice(0, 200)}`),
  );

for (const followers of ["open", "listed"] as const) {
  test(`${followers}: a stranger finds nothing of a private program at any public door, and its owner everything`, async (t) => {
    t.timeout(600_000);
    const markers = createMarkers();
    const programs = privatePrograms(people, markers);
    const { node, kept } = await startShowing(t, { followers });
    const client = connectGrpc(node.port);
    t.teardown(() => client.close());
    const { hashes, included, said } = await takeAll(t, client, programs.steps, markers);
    t.deepEqual(findIn(markers, said), [], "what senders are told");
    t.true(included.size > 50);
    const known = await learn(node, programs, hashes, markers);
    // What became of transactions is the same by every door.
    const some = { ...known, texts: known.texts.slice(0, -hashes.length + 2) };

    // A stranger who is proved to be somebody is one all the same.
    const stranger = followers === "open" ? {} : callerOf(people.stranger).headers();
    for (const [door, walk] of Object.entries(publicDoors)) {
      const walked = await walk(t, node, door === "plain" ? known : some, stranger);
      t.deepEqual(findIn(markers, walked).slice(0, 5), [], door);
      if (door !== "metrics") {
        t.true(
          walked.some(({ bytes }) => isIn(programs.publicText, bytes)),
          `${door} shows what is public`,
        );
        if (followers === "open") {
          // That the search can find, the other network shows.
          continue;
        }
        const own = await walk(t, node, { ...known, texts: [markers.beginning] }, callerOf(people.owner).headers());
        const found = new Set(own.flatMap(({ bytes }) => markers.findIn(bytes)));
        t.deepEqual(
          [...included].filter((name) => !found.has(name)),
          [],
          `${door} shows its owner what is his`,
        );
      }
    }
    const ofFollower = findIn(markers, await walkInternalPort(t, node, some, people.stranger));
    t.is(ofFollower.length > 0, followers === "open", ofFollower.slice(0, 5).join("\n"));
    // Lines and spans are written behind the answers that they tell of, and lines up to so many a second.
    await until(async () => {
      await client.call(ChainService.method.getBlock, { number: 1n });
      return kept().every(({ bytes }) => bytes.includes("gatehouse.chain.v1.ChainService/GetBlock"));
    });
    t.deepEqual(findIn(markers, kept()).slice(0, 5), []);
  });
}

/** Whether bytes tell a text, as it is or in base64. */
function isIn(text: string, bytes: Buffer): boolean {
  return formsOf(text).some((form) => bytes.includes(form, 0, "latin1"));
}

test("who may read a program now, reads what was done with it, and nobody else does; all of that can be checked", async (t) => {
  const { owner, reader, member, stranger } = people;
  const node = await startMemberOf(t, { key: authority, genesis });
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  let number = 0n;
  /** One block for each. */
  const apply = async (operation: Operation): Promise<void> => {
    number++;
    const transaction = signTransaction(owner, Number(number), operation);
    await submit(client, transaction);
    await until(async () => (await chain.getHead({})).number === number);
  };
  /** Whether a caller gets the body in block 1, by its number, by its hash and in the stream of blocks. */
  const reads = async (caller?: TestKey): Promise<boolean> => {
    const options = { headers: caller === undefined ? {} : callerOf(caller).headers() };
    const byNumber = await chain.getBlock({ number: 1n }, options);
    const { block: byHash } = await chain.getBlockByHash({ hash: byNumber.hash }, options);
    t.deepEqual(byHash, byNumber);
    const listed: Block[] = [];
    for await (const { block } of chain.listBlocks({ fromNumber: 1n }, options)) {
      listed.push(block!);
    }
    t.is(BigInt(listed.length), number);
    t.deepEqual(listed[0], byNumber.block);
    const { header, transactions } = byNumber.block!;
    const hashes = transactions.map(({ body, withheldHash }) => withheldHash ?? sha256(body));
    t.deepEqual(hashes, byNumber.transactionHashes);
    const { transactionsHash } = fromBinary(BlockHeaderSchema, header);
    t.is(sha256(Buffer.from(hashes.map((hash) => hash.slice(2)).join(""), "hex")), transactionsHash);
    const [{ body, signature, withheldHash }] = transactions as [Block["transactions"][0]];
    t.is(body.length > 0 && signature.length === 64, withheldHash === undefined);
    t.is(body.length === 0 && signature.length === 0, withheldHash !== undefined);
    return withheldHash === undefined;
  };
  const whoReads = async (): Promise<string> => {
    const all = { owner, reader, member, stranger, nobody: undefined };
    const found = await Promise.all(Object.values(all).map(reads));
    return Object.keys(all)
      .filter((_, i) => found[i])
      .join();
  };
  const groupOf = (...permissions: AccessPermission[]) => ({ a: { members: [member.publicKey], permissions } });
  const { RESTRICTED, OWNER, PUBLIC } = AccessMode;
  await apply({
    case: "createProgram",
    value: { programName: "a", access: { mode: RESTRICTED, allowed: [reader.publicKey] } },
  });
  const storageAddress = programAddress(owner.publicKey, "a", 1n, "");
  t.is(await whoReads(), "owner,reader");
  for (const [access, readers] of [
    [{ mode: RESTRICTED, groups: groupOf(AccessPermission.READ) }, "owner,member"],
    [{ mode: RESTRICTED, groups: groupOf(AccessPermission.WRITE) }, "owner"],
    [{ mode: OWNER, allowed: [reader.publicKey] }, "owner"],
    [{ mode: PUBLIC }, "owner,reader,member,stranger,nobody"],
    [{ mode: PUBLIC, blacklisted: [reader.publicKey] }, "owner,member,stranger,nobody"],
  ] as const) {
    await apply({ case: "updateAccess", value: { storageAddress, access } } as Operation);
    t.is(await whoReads(), readers, JSON.stringify(access));
  }
  await apply({ case: "deleteProgram", value: { storageAddress } });
  t.is(await whoReads(), "owner");

  const { block } = await chain.getBlock({ number: 1n });
  const handIn = await t.throwsAsync(chain.submitTransaction({ transaction: block!.transactions[0]! }));
  t.regex(handIn.message, /withheld/);
});
