/** Response cache: every response equals the one of a server without a cache. */
import test from "ava";
import { type Caching, Caching as MadeOf } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { createEdge } from "../../../src/edge/edge.js";
import { RpcError } from "../../../src/rpc/errors.js";
import { serve, type ServedService } from "../../../src/rpc/service.js";
import { numberedHash, openSettings, startServices } from "../../helpers/nodes/edge-server.js";
import { testKey } from "../../helpers/chain/keys.js";
import { ask } from "../../helpers/wire/plain-client.js";
import { createRandom } from "../../helpers/wire/random-message.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";

/** Starts a server of a changing state. */
async function startServer(t: Teardown, state: { block: number }, maxCacheBytes?: number) {
  const edge = createEdge({ ...openSettings, identityMode: "trusted-header", rateLimitExempt: ["127.0.0.0/8"] });
  const calls = { count: 0, onCall: (): void => undefined };
  const service = serve(ZkService, {
    getMerkleRoot: () => ({ rootHash: `root ${state.block}`, leafCount: 1 }),
    getMerkleProof: () => {
      throw new RpcError("NOT_FOUND", "It is not there.");
    },
    // The request sets the length of the response, and if the response is asynchronous.
    getNullifier: async ({ nullifierHash: length }, { caller }) => {
      calls.count++;
      const { block } = state;
      calls.onCall();
      await Promise.resolve();
      if (Number(length) % 7 === block % 7) {
        throw new RpcError("NOT_FOUND", `Not in block ${block}.`);
      }
      const text = "x".repeat(Number(length));
      const nullifierHash = `${Number(length)} in ${block} for ${caller.identity ?? "anybody"} ${text}`;
      return { nullifierHash, used: true };
    },
  });
  const tagOf = (madeOf: Caching) => (madeOf === MadeOf.STATE ? `W/"${state.block}"` : undefined);
  const cache = maxCacheBytes === undefined ? {} : { maxCacheBytes, stateTags: { tagOf } };
  const { port } = await startServices(t, [identifyingAll(service)], edge, cache);
  return { port, calls };
}

/** Returns the service with rpcs that all identify their callers. */
function identifyingAll({ desc, methods }: ServedService): ServedService {
  return { desc, methods: methods.map((method) => ({ ...method, identifiesCaller: true })) };
}

const mib = 1024 * 1024;

test("responds to every caller as a server without a cache, for any order of requests and blocks", async (t) => {
  const seed = Number(process.env["SEED"] ?? 29);
  t.log(`SEED=${seed}`);
  const random = createRandom(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const state = { block: 1 };
  const keeping = await startServer(t, state, mib);
  const plain = await startServer(t, state);
  let unchanged = 0;
  // Responses over 16 kB are cached as bytes, and those over 64 kB not at all.
  const sizes = [1, 2, 3, 20_000, 70_000];
  const connect = (size: number, encoding: string): string => {
    const message = encodeURIComponent(JSON.stringify({ nullifierHash: numberedHash(size) }));
    const json = `/gatehouse.zk.v1.ZkService/GetNullifier?connect=v1&encoding=json&message=${message}`;
    return encoding === "json" ? json : "/gatehouse.zk.v1.ZkService/GetNullifier?connect=v1&encoding=proto&message=";
  };
  for (let i = 0; i < 600; i++) {
    if (random() < 0.03) {
      state.block++;
    }
    const size = pick(sizes);
    const path = pick([
      `/zk/nullifier/${numberedHash(size)}`,
      "/zk/merkle-root",
      "/zk/merkle-proof/1",
      connect(size, "json"),
      connect(size, "proto"),
    ]);
    const identity = random() < 0.3 ? testKey(1).publicKey : undefined;
    const shown = pick([undefined, undefined, `W/"${state.block}"`, `W/"${state.block - 1}"`, "*"]);
    const method = path.includes("connect") ? "GET" : pick(["GET", "GET", "HEAD"]);
    const of = { method, headers: { ...(identity && { identity }) } };
    const [answer, expected] = [
      await ask(keeping.port, path, {
        ...of,
        headers: { ...of.headers, ...(shown !== undefined && { "if-none-match": shown }) },
      }),
      await ask(plain.port, path, of),
    ];
    const what = `${i}: ${method} ${path} at ${state.block}, ${identity === undefined ? "anybody" : "somebody"}`;
    const { status, text, headers } = answer;
    if (status === 304) {
      unchanged++;
      t.is(expected.status, 200, what);
      t.is(identity, undefined, what);
      t.true(shown === `W/"${state.block}"` || shown === "*", what);
      t.is(text, "");
      t.is(headers.etag, `W/"${state.block}"`);
    } else {
      t.deepEqual([status, text], [expected.status, expected.text], what);
      for (const name of ["content-type", "content-length", "access-control-allow-origin"]) {
        t.is(headers[name], expected.headers[name], what);
      }
      const isFor = status === 200 && identity === undefined ? "public, no-cache" : "private, no-store";
      t.is(headers["cache-control"], isFor, what);
      t.is(headers.etag, isFor === "public, no-cache" ? `W/"${state.block}"` : undefined, what);
      t.not(headers["x-request-id"], undefined);
    }
  }
  t.true(unchanged > 20, String(unchanged));
  t.true(keeping.calls.count < plain.calls.count * 0.9, `${keeping.calls.count} of ${plain.calls.count}`);
});

test("calls an rpc at most twice per state, and again after the next block", async (t) => {
  const state = { block: 1 };
  const { port, calls } = await startServer(t, state, mib);
  for (let block = 1; block <= 3; block++) {
    state.block = block;
    calls.count = 0;
    const answers = [];
    for (let i = 0; i < 5; i++) {
      answers.push((await ask(port, `/zk/nullifier/${numberedHash(20)}`)).text);
    }
    t.is(new Set(answers).size, 1);
    t.true(answers[0]!.includes(`in ${block} for anybody`));
    t.is(calls.count, 2);
    // Responses to callers with an identity are never cached.
    const headers = { identity: testKey(1).publicKey };
    t.true((await ask(port, `/zk/nullifier/${numberedHash(20)}`, { headers })).text.includes(testKey(1).publicKey));
    t.is(calls.count, 3);
    t.false((await ask(port, `/zk/nullifier/${numberedHash(20)}`)).text.includes(testKey(1).publicKey));
  }
});

test("caches no response during whose call a block was applied", async (t) => {
  const state = { block: 1 };
  const { port, calls } = await startServer(t, state, mib);
  await ask(port, `/zk/nullifier/${numberedHash(20)}`);
  calls.onCall = () => state.block++;
  const between = await ask(port, `/zk/nullifier/${numberedHash(20)}`);
  t.is(between.headers["cache-control"], "private, no-store");
  calls.onCall = () => undefined;
  for (const block of [1, 2, 1, 2]) {
    state.block = block;
    t.true((await ask(port, `/zk/nullifier/${numberedHash(20)}`)).text.includes(`20 in ${block} for`));
  }
});

test("limits the cached bytes, for any number of different requests", async (t) => {
  const { port, calls } = await startServer(t, { block: 1 }, 100_000);
  const askTwice = async (size: number): Promise<void> => {
    await ask(port, `/zk/nullifier/${numberedHash(size)}`);
    await ask(port, `/zk/nullifier/${numberedHash(size)}`);
  };
  await askTwice(2);
  calls.count = 0;
  await ask(port, `/zk/nullifier/${numberedHash(2)}`);
  t.is(calls.count, 0);
  // The cache has capacity for five of these.
  for (let i = 0; i < 10; i++) {
    await askTwice(7 * (1_400 + i) + 2);
  }
  calls.count = 0;
  await ask(port, `/zk/nullifier/${numberedHash(2)}`);
  t.is(calls.count, 1);
});
