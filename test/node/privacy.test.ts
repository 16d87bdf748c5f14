/**
 * What private means, at every door: a stranger reads all that can be read, and all of it is searched for what is in
 * private programs. The owner, who does the same, finds it: so the search can find.
 */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { callerOf } from "../helpers/caller.js";
import { type Doors, publicDoors, type Said, walkInternalPort } from "../helpers/doors.js";
import { connectGrpc, type TestGrpcClient } from "../helpers/grpc-client.js";
import { testKey } from "../helpers/keys.js";
import type { Known } from "../helpers/known-requests.js";
import { createMarkers, formsOf, type Markers } from "../helpers/markers.js";
import { networkOf, startProcessOf } from "../helpers/network.js";
import { askJson } from "../helpers/plain-client.js";
import { type People, type PrivatePrograms, privatePrograms, type Step } from "../helpers/private-programs.js";
import { silentPeer } from "../helpers/start-node.js";
import type { Teardown } from "../helpers/teardown.js";
import { signTransaction } from "../helpers/transactions.js";
import { until } from "../helpers/until.js";

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
      hashes.push((await client.call(ChainService.method.submitTransaction, { transaction })).hash);
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
  const texts = [...addresses, people.owner.publicKey, ...hashes, hash, markers.beginning, "0"];
  return { texts, numbers: [...Array.from({ length: number + 2 }, (_, i) => i), 200] };
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

    for (const [door, walk] of Object.entries(publicDoors)) {
      for (const headers of [{}, callerOf(people.stranger).headers()]) {
        const walked = await walk(t, node, known, headers);
        t.deepEqual(findIn(markers, walked).slice(0, 5), [], door);
        t.true(door === "metrics" || walked.some(({ bytes }) => isIn(programs.publicText, bytes)), door);
      }
      if (door !== "metrics") {
        const own = await walk(t, node, known, callerOf(people.owner).headers());
        const found = new Set(own.flatMap(({ bytes }) => markers.findIn(bytes)));
        t.deepEqual(
          [...included].filter((name) => !found.has(name)),
          [],
          `${door}, its owner`,
        );
      }
    }
    const ofFollower = findIn(markers, await walkInternalPort(t, node, known, people.stranger));
    t.is(ofFollower.length > 0, followers === "open", ofFollower.slice(0, 5).join("\n"));
    t.deepEqual(findIn(markers, kept()).slice(0, 5), []);
    t.true(kept().every(({ bytes }) => bytes.includes("gatehouse.chain.v1.ChainService/GetBlock")));
  });
}

/** Whether bytes tell a text, as it is or in base64. */
function isIn(text: string, bytes: Buffer): boolean {
  return formsOf(text).some((form) => bytes.includes(form, 0, "latin1"));
}
