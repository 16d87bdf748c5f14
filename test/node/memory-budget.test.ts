/** How a node divides the memory that there is. */
import test from "ava";
import { totalmem } from "node:os";
import { maxResponseBytes } from "../../src/base/limits/response-limits.js";
import { defaultBytes } from "../../src/edge/byte-budget.js";
import { divideMemory, findMemory } from "../../src/node/lifecycle/memory-budget.js";

const mib = 1024 * 1024;
const divide = (sizeMib: number, heapMib = sizeMib) =>
  divideMemory({ bytes: sizeMib * mib, heapBytes: heapMib * mib }, 8);

test("from a gigabyte on nothing is bounded more tightly than by itself", (t) => {
  t.deepEqual(divide(1_024), divide(64 * 1_024));
  t.deepEqual(divide(1_024).exchanges, defaultBytes);
});

test("what a node of 256 MiB holds leaves most of it for what it is at", (t) => {
  const { exchanges, programsBytes, responseBytes, readershipBytes, eventBytes, checks, proofThreads } = divide(256);
  const caches = programsBytes + 2 * responseBytes + readershipBytes + eventBytes;
  t.true(exchanges.totalBytes + exchanges.extraBytes + caches <= 54 * mib);
  t.is(checks.threads, 1);
  t.is(checks.heapMib, 64);
  t.is(proofThreads, 1);
});

test("large documents have a thread of their own where there is memory for it, and another processor", (t) => {
  t.is(divide(1_024).documentHeapMib, 256);
  t.is(divide(1_023).documentHeapMib, 0);
  t.is(divideMemory({ bytes: 8_192 * mib, heapBytes: 4_096 * mib }, 1).documentHeapMib, 0);
});

test("however little there is, one connection gets the largest answer, as JSON too", (t) => {
  const { perConnectionBytes, perAddressBytes, totalBytes } = divide(64).exchanges;
  t.true(perConnectionBytes >= (maxResponseBytes * 4) / 3);
  t.true(perAddressBytes >= perConnectionBytes);
  t.true(totalBytes >= perAddressBytes);
});

test("a heap that is smaller than the memory bounds what is kept in it", (t) => {
  t.true(divide(4_096, 100).programsBytes <= 20 * mib);
});

test("the operator's word counts, otherwise what the machine has is the most", (t) => {
  t.is(findMemory(256).bytes, 256 * mib);
  const { bytes } = findMemory(0);
  t.true(bytes > 0 && bytes <= totalmem());
});
