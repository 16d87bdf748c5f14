/**
 * Memory limits of a node, derived from the available memory. Caches, requests in flight and threads take their limits
 * from here. From 1 GiB of memory on, the limits have their full values. Below 1 GiB they shrink in proportion, down to
 * what the largest transaction and the largest block need.
 */
import { availableParallelism, totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import { defaultBacklog } from "../../edge/connection-limit.js";
import { type ByteLimits, defaultBytes } from "../../edge/request-permit.js";

export type MemoryLimits = ReturnType<typeof divideMemory>;

const mib = 1024 * 1024;
/** Memory from which on the limits have their full values. */
const enoughBytes = 1024 * mib;
const bytesOfThread = 256 * mib;

/**
 * Finds the available memory: the operator's setting, or else the memory of the container or machine.
 *
 * @param configuredMib setting of the operator in MiB; 0 detects the memory.
 * @param processes number of processes that share the memory.
 * @returns the memory that this process may use, and the part of it that the JavaScript heap may use.
 */
export function findMemory(configuredMib: number, processes = 1) {
  const { heap_size_limit: heapBytes } = getHeapStatistics();
  return { bytes: Math.floor(findBytes(configuredMib) / processes), heapBytes };
}

function findBytes(configuredMib: number): number {
  if (configuredMib > 0) {
    return configuredMib * mib;
  }
  // Without a constraint the result is 0 or exceeds the machine's memory. Some systems do not report it.
  const constrained = (process.constrainedMemory as (() => number | undefined) | undefined)?.() ?? 0;
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

export function divideMemory({ bytes, heapBytes }: ReturnType<typeof findMemory>, processors = availableParallelism()) {
  const ratio = Math.min(1, bytes / enoughBytes);
  const shrink = (max: number, min: number): number => Math.max(min, Math.floor(max * ratio));
  const threads = Math.max(1, Math.floor(bytes / bytesOfThread));
  const exchanges: ByteLimits = {
    ...defaultBytes,
    totalBytes: shrink(defaultBytes.totalBytes, 24 * mib),
    extraBytes: shrink(defaultBytes.extraBytes, 2 * mib),
    perAddressBytes: shrink(defaultBytes.perAddressBytes, 16 * mib),
    // A response of 4 MiB is a third larger as JSON.
    perConnectionBytes: shrink(defaultBytes.perConnectionBytes, 8 * mib),
  };
  return {
    exchanges,
    /** Limits on unanswered requests and unparsed bytes. */
    backlog: {
      totalBytes: shrink(defaultBacklog.totalBytes, 20 * mib),
      perAddressBytes: shrink(defaultBacklog.perAddressBytes, 6 * mib),
    },
    /** Limit on cached storage programs, in bytes of text; at most a fifth of the JavaScript heap. */
    programsBytes: Math.min(shrink(48 * mib, 4 * mib), Math.floor(heapBytes / 5)),
    /** Limit on responses that are cached until the next block, for each protocol that caches them. */
    responseBytes: shrink(4 * mib, 1 * mib),
    /** Limit on cached block data that decides which clients may read a block. */
    readershipBytes: shrink(16 * mib, 1 * mib),
    /** Below 8 MiB the cache of block events cannot hold the largest block twice, given how block-log.ts divides it. */
    eventBytes: shrink(16 * mib, 8 * mib),
    /** Threads that check large transactions. Below 64 MiB a heap cannot hold the worst-case document after parsing. */
    checks: { threads: Math.max(1, Math.min(2, processors - 1, threads)), heapMib: shrink(256, 64) },
    /**
     * Heap of the thread that hashes large documents of blocks; 0 disables the thread. The worst-case document of 1 MiB
     * has 100 MiB of leaves. A thread would hold them a second time, besides the block.
     */
    documentHeapMib: ratio < 1 || processors === 1 ? 0 : 256,
    /** Threads that verify proofs. One processor is left for requests, whatever anyone submits. */
    proofThreads: Math.max(1, Math.min(4, processors - 1, threads)),
  };
}
