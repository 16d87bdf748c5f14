/**
 * What a node may hold in memory, by how much of it there is: the one place that caches, bytes under way and threads have
 * their bounds from. At a gigabyte and above they are what they are without a limit; below, they shrink with it, down to
 * what the largest transaction and the largest block need.
 */
import { availableParallelism, totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import { type ByteBounds, defaultBytes } from "../../edge/byte-budget.js";

/** Bounds of what is held. */
export interface MemoryBounds {
  /** Of requests and answers under way. */
  readonly exchanges: ByteBounds;
  /** Of programs that are kept, as texts. */
  readonly programsBytes: number;
  /** Of answers that are kept until the next block, for each protocol that has such. */
  readonly answerBytes: number;
  /** Of what is kept of blocks to know who may read them. */
  readonly readershipBytes: number;
  /** Of the events of blocks that are kept for those who watch. */
  readonly eventBytes: number;
  /** Threads that look at large transactions, and the heap of each. */
  readonly checks: { readonly threads: number; readonly heapMib: number };
  /** Heap of the thread that hashes large documents of blocks; 0 where that is better done without one. */
  readonly documentHeapMib: number;
  /** Threads of proofs and of the commitment tree. */
  readonly proofThreads: number;
}

const mib = 1024 * 1024;
/** With so much, nothing is bounded more tightly than by itself. */
const enoughBytes = 1024 * mib;
/** A thread takes up to so much of it. */
const bytesOfThread = 256 * mib;

/** Memory that this process may use, and the part of it that its JavaScript may. */
export interface Memory {
  readonly bytes: number;
  readonly heapBytes: number;
}

/**
 * The memory that there is: what the operator says, or what the container or the machine has.
 *
 * @param processes how many have it together.
 */
export function findMemory(saidMib: number, processes = 1): Memory {
  const { heap_size_limit: heapBytes } = getHeapStatistics();
  return { bytes: Math.floor(findBytes(saidMib) / processes), heapBytes };
}

function findBytes(saidMib: number): number {
  if (saidMib > 0) {
    return saidMib * mib;
  }
  // Where nothing constrains the process it is 0, or more than there is; some systems cannot tell.
  const constrained = (process.constrainedMemory as (() => number | undefined) | undefined)?.() ?? 0;
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** Divides it. */
export function divideMemory({ bytes, heapBytes }: Memory, processors = availableParallelism()): MemoryBounds {
  const part = Math.min(1, bytes / enoughBytes);
  const shrink = (most: number, least: number): number => Math.max(least, Math.floor(most * part));
  const threads = Math.max(1, Math.floor(bytes / bytesOfThread));
  return {
    exchanges: {
      ...defaultBytes,
      totalBytes: shrink(defaultBytes.totalBytes, 24 * mib),
      reserveBytes: shrink(defaultBytes.reserveBytes, 2 * mib),
      perAddressBytes: shrink(defaultBytes.perAddressBytes, 16 * mib),
      // An answer of 4 MiB is a third longer as JSON.
      perConnectionBytes: shrink(defaultBytes.perConnectionBytes, 8 * mib),
    },
    programsBytes: Math.min(shrink(48 * mib, 4 * mib), Math.floor(heapBytes / 5)),
    answerBytes: shrink(4 * mib, 1 * mib),
    readershipBytes: shrink(16 * mib, 1 * mib),
    // Less than 8 MiB does not hold the largest block twice, as block-log.ts divides it.
    eventBytes: shrink(16 * mib, 8 * mib),
    // Less than 64 MiB does not hold what the worst document of 1 MiB becomes.
    checks: { threads: Math.max(1, Math.min(2, processors - 1, threads)), heapMib: shrink(256, 64) },
    // The worst document of 1 MiB is 100 MiB of leaves, which would be there twice with what the block holds of it.
    documentHeapMib: part < 1 || processors === 1 ? 0 : 256,
    proofThreads: Math.max(1, Math.min(4, processors, threads)),
  };
}
