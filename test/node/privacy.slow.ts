/**
 * Privacy of programs over every API. A stranger requests everything, and all responses are searched for private texts.
 * The owner does the same and finds them, which shows that the search works.
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
import { type NodePorts, publicApis, type RecordedResponse, crawlInternalPort } from "../helpers/wire/doors.js";
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

/** Starts a node with full logs, traces, metrics and MCP. */
async function startVerbose(t: Teardown, flags: Readonly<Record<string, string | boolean>>) {
  const traces: Buffer[] = [];
  const collector = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => traces.push(chunk));
    request.on("end", () => response.end("{}"));
  }).listen(0, "127.0.0.1");
  await once(collector, "listening");
  t.teardown(() => collector.close());
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const verbose = {
    "metrics-enabled": true,
    "metrics-port": "0",
    "mcp-enabled": true,
    "mcp-port": "0",
    "log-level": "trace",
  };
  const node = await startProcessOf(t, {
    ...{ key: authority, genesis, seeds: [silentPeer] },
    flags: { ...verbose, "otlp-endpoint": endpoint, ...flags },
  });
  const recorded = (): RecordedResponse[] => [
    { api: "log", request: "", bytes: Buffer.from(node.stderr()) },
    { api: "traces", request: "", bytes: Buffer.concat(traces) },
  ];
  return { node, recorded };
}

/** The outcome of submitted steps. */
interface Outcome {
  /** Hashes of the transactions that were not rejected on submission. */
  readonly hashes: readonly string[];
  /** Names of the markers that blocks contain. */
  readonly included: ReadonlySet<string>;
  /** The errors of the transactions that were rejected on submission. */
  readonly errors: readonly RecordedResponse[];
}

/** Submits a transaction. Retries while the node is overloaded. */
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

/** Submits steps, and waits for their outcome. Consecutive steps of one sender may share a block. */
async function submitAll(
  t: ExecutionContext,
  client: TestGrpcClient,
  steps: readonly Step[],
  markers: Markers,
): Promise<Outcome> {
  const errors: RecordedResponse[] = [];
  const hashes: string[] = [];
  const included = new Set<string>();
  const statusOf = async (hash: string) => (await client.call(ChainService.method.getTransaction, { hash })).status;
  for (const [i, { sender, nonce, operation, isRejected }] of steps.entries()) {
    const last = hashes.at(-1);
    if (last !== undefined && steps[i - 1]!.sender !== sender) {
      await until(async () => (await statusOf(last)) !== TransactionStatus.PENDING);
    }
    const transaction = signTransaction(sender, nonce, operation);
    if (!isRejected) {
      markers.findIn(Buffer.from(transaction.body)).forEach((name) => included.add(name));
    }
    try {
      hashes.push(await submit(client, transaction));
    } catch (error) {
      t.true(isRejected, `${operation.case}: ${String(error)}`);
      errors.push({ api: "submission", request: String(operation.case), bytes: Buffer.from(String(error)) });
    }
  }
  for (const hash of hashes) {
    await until(async () => (await statusOf(hash)) !== TransactionStatus.PENDING);
  }
  const statuses = await Promise.all(hashes.map(statusOf));
  const count = (status: TransactionStatus): number => statuses.filter((found) => found === status).length;
  t.is(count(TransactionStatus.INCLUDED), steps.filter(({ isRejected }) => !isRejected).length);
  t.is(count(TransactionStatus.REJECTED) + errors.length, steps.filter(({ isRejected }) => isRejected).length);
  return { hashes, included, errors };
}

/** The hashes and addresses that a stranger can learn from heads, pending transactions and blocks. */
async function learn(
  { port }: NodePorts,
  { addresses }: PrivatePrograms,
  hashes: readonly string[],
  markers: Markers,
): Promise<Known> {
  const { number, hash } = await askJson<{ number: number; hash: string }>(port, "/chain/head");
  return {
    texts: [...addresses, hash, people.owner.publicKey, markers.stemPrefix, ...hashes],
    numbers: Array.from({ length: number + 2 }, (_, i) => i),
  };
}

/** Names the markers in responses, with the requests. */
const findIn = (markers: Markers, responses: readonly RecordedResponse[]): string[] =>
  responses.flatMap(({ api, request, bytes }) =>
    markers.findIn(bytes).map((name) => `${name}: ${api} ${request.slice(0, 200)}`),
  );

for (const followers of ["open", "listed"] as const) {
  test(`followers ${followers}: every API hides private data from strangers, and shows it to the owner`, async (t) => {
    t.timeout(600_000);
    const markers = createMarkers();
    const programs = privatePrograms(people, markers);
    const { node, recorded } = await startVerbose(t, { followers });
    const client = connectGrpc(node.port);
    t.teardown(() => client.close());
    const { hashes, included, errors } = await submitAll(t, client, programs.steps, markers);
    t.deepEqual(findIn(markers, errors), [], "errors of rejected submissions");
    t.true(included.size > 50);
    const known = await learn(node, programs, hashes, markers);
    // The status of transactions is the same in every API, so two hashes are enough outside plain HTTP.
    const some = { ...known, texts: known.texts.slice(0, -hashes.length + 2) };

    // A stranger with a verified identity is still a stranger.
    const stranger = followers === "open" ? {} : callerOf(people.stranger).headers();
    for (const [api, crawl] of Object.entries(publicApis)) {
      const responses = await crawl(t, node, api === "plain" ? known : some, stranger);
      t.deepEqual(findIn(markers, responses).slice(0, 5), [], api);
      if (api !== "metrics") {
        t.true(
          responses.some(({ bytes }) => isIn(programs.publicText, bytes)),
          `${api} shows public data`,
        );
        if (followers === "open") {
          // The network with listed followers shows that the search works.
          continue;
        }
        const own = await crawl(t, node, { ...known, texts: [markers.stemPrefix] }, callerOf(people.owner).headers());
        const found = new Set(own.flatMap(({ bytes }) => markers.findIn(bytes)));
        t.deepEqual(
          [...included].filter((name) => !found.has(name)),
          [],
          `${api} shows the owner all private data`,
        );
      }
    }
    const ofFollower = findIn(markers, await crawlInternalPort(t, node, some, people.stranger));
    t.is(ofFollower.length > 0, followers === "open", ofFollower.slice(0, 5).join("\n"));
    // Log lines and spans are written after the responses, and the log has a rate limit.
    await until(async () => {
      await client.call(ChainService.method.getBlock, { number: 1n });
      return recorded().every(({ bytes }) => bytes.includes("gatehouse.chain.v1.ChainService/GetBlock"));
    });
    t.deepEqual(findIn(markers, recorded()).slice(0, 5), []);
  });
}

/** Returns true if the bytes contain a text, as it is or in base64. */
function isIn(text: string, bytes: Buffer): boolean {
  return formsOf(text).some((form) => bytes.includes(form, 0, "latin1"));
}

test("only readers of a program get its transactions; others get hashes that they can verify", async (t) => {
  const { owner, reader, member, stranger } = people;
  const node = await startMemberOf(t, { key: authority, genesis });
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  let number = 0n;
  /** Applies an operation in its own block. */
  const apply = async (operation: Operation): Promise<void> => {
    number++;
    const transaction = signTransaction(owner, Number(number), operation);
    await submit(client, transaction);
    await until(async () => (await chain.getHead({})).number === number);
  };
  /** Returns true if a caller gets the body in block 1. Reads it by number, by hash and in the stream of blocks. */
  const canRead = async (caller?: TestKey): Promise<boolean> => {
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
  const readersOfBlock1 = async (): Promise<string> => {
    const all = { owner, reader, member, stranger, anonymous: undefined };
    const found = await Promise.all(Object.values(all).map(canRead));
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
  t.is(await readersOfBlock1(), "owner,reader");
  for (const [access, readers] of [
    [{ mode: RESTRICTED, groups: groupOf(AccessPermission.READ) }, "owner,member"],
    [{ mode: RESTRICTED, groups: groupOf(AccessPermission.WRITE) }, "owner"],
    [{ mode: OWNER, allowed: [reader.publicKey] }, "owner"],
    [{ mode: PUBLIC }, "owner,reader,member,stranger,anonymous"],
    [{ mode: PUBLIC, blacklisted: [reader.publicKey] }, "owner,member,stranger,anonymous"],
  ] as const) {
    await apply({ case: "updateAccess", value: { storageAddress, access } } as Operation);
    t.is(await readersOfBlock1(), readers, JSON.stringify(access));
  }
  await apply({ case: "deleteProgram", value: { storageAddress } });
  t.is(await readersOfBlock1(), "owner");

  const { block } = await chain.getBlock({ number: 1n });
  const error = await t.throwsAsync(chain.submitTransaction({ transaction: block!.transactions[0]! }));
  t.regex(error.message, /withheld/);
});
