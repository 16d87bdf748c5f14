/** The division of the available memory between caches, requests and threads. */
import test from "ava";
import { totalmem } from "node:os";
import { maxResponseBytes } from "../../src/base/limits/response-limits.js";
import { defaultBytes } from "../../src/edge/request-permit.js";
import { divideMemory, findMemory } from "../../src/node/lifecycle/memory-budget.js";

const mib = 1024 * 1024;
const divide = (sizeMib: number, heapMib = sizeMib) =>
  divideMemory({ bytes: sizeMib * mib, heapBytes: heapMib * mib }, 8);

test("from 1 GiB on, every part gets its default limit", (t) => {
  t.deepEqual(divide(1_024), divide(64 * 1_024));
  t.deepEqual(divide(1_024).exchanges, defaultBytes);
});

test("with 256 MiB, requests and caches together get at most 54 MiB", (t) => {
  const { exchanges, programsBytes, responseBytes, readershipBytes, eventBytes, checks, proofThreads } = divide(256);
  const caches = programsBytes + 2 * responseBytes + readershipBytes + eventBytes;
  t.true(exchanges.totalBytes + exchanges.extraBytes + caches <= 54 * mib);
  t.is(checks.threads, 1);
  t.is(checks.heapMib, 64);
  t.is(proofThreads, 1);
});

test("large documents get their own thread from 1 GiB and two processors on", (t) => {
  t.is(divide(1_024).documentHeapMib, 256);
  t.is(divide(1_023).documentHeapMib, 0);
  t.is(divideMemory({ bytes: 8_192 * mib, heapBytes: 4_096 * mib }, 1).documentHeapMib, 0);
});

test("threads for proofs leave one processor to requests", (t) => {
  const threadsOn = (processors: number): number =>
    divideMemory({ bytes: 8_192 * mib, heapBytes: 4_096 * mib }, processors).proofThreads;
  t.deepEqual([1, 2, 3, 4, 8].map(threadsOn), [1, 1, 2, 3, 4]);
});

test("with 64 MiB, a connection may still receive the largest response as JSON", (t) => {
  const { perConnectionBytes, perAddressBytes, totalBytes } = divide(64).exchanges;
  t.true(perConnectionBytes >= (maxResponseBytes * 4) / 3);
  t.true(perAddressBytes >= perConnectionBytes);
  t.true(totalBytes >= perAddressBytes);
});

test("a heap smaller than the memory limits the caches in it", (t) => {
  t.true(divide(4_096, 100).programsBytes <= 20 * mib);
});

test("uses the configured memory, or otherwise at most the memory of the machine", (t) => {
  t.is(findMemory(256).bytes, 256 * mib);
  const { bytes } = findMemory(0);
  t.true(bytes > 0 && bytes <= totalmem());
});
