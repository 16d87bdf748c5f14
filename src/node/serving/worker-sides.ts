/** What a node and the processes that serve its public port do for each other. */
import type { Config } from "../../config/config.js";
import type { EdgeStats, SharedUsage } from "../../edge/edge.js";
import type { OverloadBounds } from "../../edge/overload.js";
import type { ProcessErrors } from "../../health/process-errors.js";
import type { HistoryPoint } from "../../metrics/history.js";
import type { RequestCounts } from "../../metrics/metrics.js";
import type { ListenAddress } from "../../rpc/port/listen.js";
import type { Forwarding } from "../../workers/forward.js";

/** What a worker is given when it begins. */
export interface WorkerStart {
  readonly config: Config;
  readonly overload: OverloadBounds | undefined;
  readonly stateHeadEveryMs: number;
}

/** What a worker is given when the node has booted. */
export interface WorkerBooted {
  /** Of the node: 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** False where the node could not read its chain: then nothing is told of the one in the database. */
  readonly hasChain: boolean;
  /** The newest statement of an authority, as a SignedHead. */
  readonly headStatement: Uint8Array | undefined;
  /** The day behind the node. */
  readonly history: readonly HistoryPoint[];
}

/** How a worker is, once a second. */
export interface WorkerVitals {
  readonly residentBytes: number;
  /** Processor time since it began. */
  readonly cpuSeconds: number;
}

/** A line of its log. */
export interface WorkerLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: object;
  readonly message: string;
}

/** What a node does for a worker. */
export interface NodeSide extends Forwarding {
  readonly tells: {
    usage(usage: SharedUsage): void;
    vitals(vitals: WorkerVitals): void;
    log(line: WorkerLine): void;
    /** What of the database is damaged, as far as it was met; undefined when all is right again. */
    damage(sentence: string | undefined): void;
    /** Something that nobody caught. */
    uncaught(error: { readonly kind: Parameters<ProcessErrors["count"]>[0]; readonly message: string }): void;
  };
}

/** What a worker does for its node. */
export interface WorkerSide {
  readonly calls: {
    start(given: { readonly start: WorkerStart; readonly address: ListenAddress }): Promise<void>;
    serve(booted: WorkerBooted): Promise<void>;
    drain(graceMs: number): Promise<void>;
    /** What callers have in it. */
    edgeStats(none: undefined): EdgeStats;
    /** Its requests by protocol, rpc and outcome. */
    requests(none: undefined): Promise<RequestCounts>;
  };
  readonly streams: Readonly<Record<string, never>>;
  readonly tells: {
    usage(usage: SharedUsage): void;
    /** There is a new block. */
    block(none: undefined): void;
    /** An authority says anew which block is the newest: a SignedHead. */
    headStated(signed: Uint8Array): void;
    rejected(rejection: { readonly hash: string; readonly reason: string }): void;
    historyTaken(point: HistoryPoint): void;
    /** Files that may have changed are to be read again. */
    reload(none: undefined): void;
  };
}
