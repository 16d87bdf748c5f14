import test from "ava";
import { randomBytes } from "node:crypto";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { checkPolicy } from "../../src/attestation/input.js";
import type { VerifiedPresentation } from "../../src/attestation/presentation.js";
import { startVerifier, type AttestationVerifier, type VerifierDeps } from "../../src/attestation/verifier.js";
import { RpcError } from "../../src/rpc/errors.js";
import { buildPresentation, notaryKey } from "../helpers/process/presentation.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

async function start(t: Teardown, more: Partial<VerifierDeps> = {}): Promise<AttestationVerifier> {
  const verifier = startVerifier({
    notaryKeys: [notaryKey],
    onState: () => undefined,
    onProblem: () => undefined,
    ...more,
  });
  t.teardown(() => verifier.stop());
  await verifier.started;
  return verifier;
}

/** Returns the verified presentation, or the error. */
async function outcome(verifier: AttestationVerifier, bytes: Uint8Array): Promise<VerifiedPresentation | RpcError> {
  try {
    return await verifier.verify(bytes);
  } catch (error) {
    if (error instanceof RpcError) {
      return error;
    }
    throw error;
  }
}

const good = buildPresentation();

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

test("returns the revealed ranges of a presentation, without hidden bytes", async (t) => {
  const verifier = await start(t);
  t.is(verifier.state.status, "running");
  const presentation = await verifier.verify(
    buildPresentation({
      sent: "GET / with a secret",
      recv: "a:1,b:2,c:ünï",
      revealSent: [],
      revealRecv: [
        [0, 3],
        [8, 15],
      ],
    }),
  );
  t.deepEqual(presentation, {
    serverName: undefined,
    connectionTimeS: 1_767_225_600,
    sentLength: 19,
    recvLength: 15,
    notaryKey,
    attestationId: "09".repeat(16),
    sent: [],
    recv: [
      { start: 0, end: 3, text: "a:1" },
      { start: 8, end: 15, text: "c:ünï" },
    ],
  });
});

test("rejects a notary that is not trusted, and names it", async (t) => {
  for (const notaryKeys of [[], [`1:03${"a".repeat(64)}`]]) {
    const verifier = await start(t, { notaryKeys });
    const failure = await t.throwsAsync(verifier.verify(good), { instanceOf: RpcError });
    t.is(failure.reason, "INVALID_ATTESTATION");
    t.is(failure.message, `The attestation is rejected. Its notary ${notaryKey} is not trusted here (--notary-keys).`);
  }
});

test("a policy error names its option", (t) => {
  const presentation: VerifiedPresentation = {
    serverName: "API.example",
    connectionTimeS: 1_000,
    sentLength: 0,
    recvLength: 0,
    notaryKey,
    attestationId: "",
    sent: [],
    recv: [],
  };
  const any = { maxAgeS: 0, servers: [] };
  const check = (change: object, policy: object, nowS: number) => () =>
    checkPolicy({ ...presentation, ...change }, { ...any, ...policy }, nowS * 1000);
  t.notThrows(check({}, {}, 1e9));
  t.notThrows(check({}, { maxAgeS: 60, servers: ["api.example"] }, 1_060));
  t.throws(check({}, { maxAgeS: 60 }, 1_061), { message: /61 s old; at most 60 s .*--attestation-max-age/ });
  t.throws(check({}, {}, 600), { message: /in the future/ });
  t.throws(check({}, { servers: ["other.example"] }, 1_000), { message: /"API.example" .*--attestation-servers/ });
  t.throws(check({ serverName: undefined }, { servers: ["api.example"] }, 1_000), {
    message: /carries no server name/,
  });
});

test("a flipped bit is rejected unless it changes nothing in the result", async (t) => {
  t.timeout(120_000);
  const verifier = await start(t);
  const expected = await verifier.verify(good);
  const unnoticed: number[] = [];
  for (let i = 0; i < good.length; i++) {
    for (let bit = 0; bit < 8; bit++) {
      const altered = Buffer.from(good);
      altered[i]! ^= 1 << bit;
      const result = await outcome(verifier, altered);
      if (!(result instanceof RpcError)) {
        t.deepEqual(result, expected, `byte ${i}, bit ${bit}`);
        unnoticed.push(i);
      }
    }
  }
  t.log(
    `${good.length} bytes; altered without notice, and without a change: ${[...new Set(unnoticed)].join(", ") || "none"}`,
  );
  t.true(new Set(unnoticed).size < 10);
  t.deepEqual(await verifier.verify(good), expected);
});

test("verifies a valid presentation after any invalid ones", async (t) => {
  t.timeout(120_000);
  const verifier = await start(t);
  const expected = await verifier.verify(good);
  const before = process.memoryUsage.rss();
  const attacks: Buffer[] = [
    Buffer.alloc(0),
    randomBytes(512 * 1024),
    Buffer.alloc(512 * 1024, 0xff),
    Buffer.alloc(512 * 1024),
  ];
  for (let length = 0; length < good.length; length += 7) {
    attacks.push(good.subarray(0, length));
  }
  // Forged lengths at every fifth position.
  for (let at = 0; at + 8 <= good.length; at += 5) {
    for (const length of [2n ** 31n, 2n ** 62n, 1_000_000n, 60_000_000n]) {
      attacks.push(Buffer.concat([good.subarray(0, at), u64(length), good.subarray(at + 8)]));
    }
  }
  let largest = 0;
  for (const attack of attacks) {
    const result = await outcome(verifier, attack);
    t.true(result instanceof RpcError);
    largest = Math.max(largest, process.memoryUsage.rss());
  }
  t.deepEqual(await verifier.verify(good), expected);
  t.log(`${attacks.length} attacks; memory grew by up to ${Math.round((largest - before) / 1024 ** 2)} MiB`);
  // The thread may use 64 MiB of WebAssembly memory and 72 MiB of heap, everything else 100 MiB.
  t.true(largest - before < (64 + 72 + 100) * 1024 ** 2);
});

test("verification leaks no memory: one thread verifies more data than its memory holds", async (t) => {
  t.timeout(120_000);
  const verifier = await start(t);
  const { thread } = verifier;
  const large = buildPresentation({ recv: "x".repeat(400_000), revealRecv: [[0, 400_000]] });
  const altered = Buffer.from(large);
  altered[large.length - 1]! ^= 1;
  for (let i = 0; i < 100; i++) {
    t.false((await outcome(verifier, large)) instanceof RpcError, `number ${i}`);
    t.true((await outcome(verifier, altered)) instanceof RpcError);
  }
  t.is(verifier.thread, thread);
});

test("verifies a full queue of 1,000 concurrent presentations in order, and rejects the others as BUSY", async (t) => {
  const verifier = await start(t);
  const order: number[] = [];
  const results = await Promise.all(
    Array.from({ length: 1_000 }, async (_, i) => {
      const result = await outcome(verifier, good);
      order.push(...(result instanceof RpcError ? [] : [i]));
      return result;
    }),
  );
  t.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  );
  const busy = results.filter((result) => result instanceof RpcError);
  t.true(busy.every(({ reason, retryAfterS }) => reason === "BUSY" && retryAfterS === 5));
  t.is(results.length - busy.length, 66);
  t.like(await verifier.verify(good), { attestationId: "09".repeat(16) });
});

test("a thread that ends is replaced, and only its current presentation fails", async (t) => {
  const states: string[] = [];
  const verifier = await start(t, { onState: ({ status }) => states.push(status) });
  const results = Promise.all(Array.from({ length: 20 }, () => outcome(verifier, good)));
  void verifier.thread!.terminate();
  const failures = (await results).filter((result) => result instanceof RpcError);
  t.true(failures.length <= 1);
  t.true(failures.every(({ reason }) => reason === "BUSY"));
  t.like(await verifier.verify(good), { notaryKey });
  t.deepEqual(states, ["running"]);
});

test("a presentation that traps the library is rejected as malformed, and the queue continues", async (t) => {
  const verifier = await start(t);
  const before = verifier.thread;
  const trap = buildPresentation({ recv: "x".repeat(4_321), revealRecv: [[0, 3]] });
  // A transcript of this length does not fit into the memory of the library.
  trap.writeBigUInt64LE(60_000_000n, trap.lastIndexOf(u64(4_321n)));
  // The first presentation is sent to the thread alone, and the others in one batch.
  const presentations = [trap, good, good, trap, good];
  const results = await Promise.all(presentations.map((bytes) => outcome(verifier, bytes)));
  for (const [i, result] of results.entries()) {
    if (presentations[i] === trap) {
      t.like(result, { reason: "INVALID_ATTESTATION", message: "The attestation is rejected. It is malformed." });
    } else {
      t.like(result, { notaryKey });
    }
  }
  t.not(verifier.thread, before);
});

test("a presentation that times out fails as BUSY, and the thread is replaced", async (t) => {
  const verifier = await start(t, { timeoutMs: 1 });
  const before = verifier.thread;
  const large = buildPresentation({ recv: "x".repeat(500_000), revealRecv: [[0, 500_000]] });
  const failure = await t.throwsAsync(verifier.verify(large), { instanceOf: RpcError });
  t.is(failure.reason, "BUSY");
  t.regex(failure.message, /longer than 0.001 s/);
  await until(() => verifier.thread !== undefined && verifier.thread !== before);
  t.is(verifier.state.status, "running");
});

test("a verifier that cannot start reports the reason, rejects at once, and retries", async (t) => {
  const library = join(await temporaryDirectory(t), "library.wasm");
  const states: string[] = [];
  const problems: (string | undefined)[] = [];
  const verifier = await start(t, {
    library,
    onState: ({ status }) => states.push(status),
    onProblem: (error) => problems.push((error as NodeJS.ErrnoException).code),
  });
  t.is(verifier.state.status, "failed");
  const failure = await t.throwsAsync(verifier.verify(good), { instanceOf: RpcError });
  t.is(failure.reason, "VERIFIER_NOT_RUNNING");
  t.is(failure.message, "No attestation can be verified: its library cannot be loaded.");
  t.deepEqual(problems, ["ENOENT"]);
  await copyFile("node_modules/tlsn-wasm/tlsn_wasm_bg.wasm", library);
  await until(() => verifier.state.status === "running");
  t.like(await verifier.verify(good), { notaryKey });
  t.deepEqual(states, ["failed", "running"]);
});

test("a verifier whose thread cannot be replaced reports that, and retries", async (t) => {
  const states: string[] = [];
  const verifier = await start(t, { onState: ({ status }) => states.push(status) });
  const first = verifier.thread!;
  void first.terminate();
  await until(() => verifier.thread !== undefined && verifier.thread !== first);
  const results = Promise.all([outcome(verifier, good), outcome(verifier, good)]);
  void verifier.thread!.terminate();
  for (const result of await results) {
    t.like(result, {
      reason: "VERIFIER_NOT_RUNNING",
      message: "No attestation can be verified: its thread cannot be started.",
    });
  }
  await until(() => verifier.state.status === "running");
  t.like(await verifier.verify(good), { notaryKey });
  t.deepEqual(states, ["running", "failed", "running"]);
});

test("a stopped verifier rejects with VERIFIER_NOT_RUNNING", async (t) => {
  const verifier = await start(t);
  await verifier.stop();
  const failure = await t.throwsAsync(verifier.verify(good), { instanceOf: RpcError });
  t.is(failure.reason, "VERIFIER_NOT_RUNNING");
});
