/** Variants of the node that is attacked. */
import type { BenchSettings } from "../row.js";
import type { Transport } from "./transport.js";

/** Options of a run that select the variant. */
export type VariantOptions = Pick<BenchSettings, "workers" | "edge" | "memory" | "http" | "tls">;

/** How a node is started, and what it may use. */
export interface Variant {
  /** Options of the node. */
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Memory that all processes of the node may use together, in MiB. */
  readonly memoryMib: number;
  /** True if the heap is limited for a small container. */
  readonly hasSmallHeap: boolean;
  readonly transport: Transport;
  /** Name for the output; empty for the defaults. */
  readonly name: string;
}

/** Memory from which on the limits of a node do not grow, in MiB (docs/running.md). */
const fullMemoryMib = 1_024;
/** Share of a small container that the documents give to the heap: 160 of 256 MiB. */
const heapShare = 160 / 256;

/** Returns the variant of these options. Without options, the defaults of a node. */
export function createVariant({ workers, edge, memory, http = 1, tls = false }: VariantOptions): Variant {
  const isSmall = memory !== undefined && memory < fullMemoryMib;
  const option = (name: string, value: number | string | undefined): string[] =>
    value === undefined ? [] : [`--${name}`, String(value)];
  const chosen = [...option("workers", workers), ...option("edge", edge), ...option("memory", memory)];
  const transports = [...(http === 2 ? ["HTTP/2"] : []), ...(tls ? ["TLS"] : [])];
  return {
    flags: chosen,
    env: isSmall
      ? { NODE_OPTIONS: `--max-old-space-size=${Math.floor(memory * heapShare)}`, MALLOC_ARENA_MAX: "2" }
      : {},
    memoryMib: memory ?? fullMemoryMib,
    hasSmallHeap: isSmall,
    transport: { http, tls },
    name: [...(chosen.length > 0 ? [chosen.join(" ")] : []), ...transports].join(", "),
  };
}
