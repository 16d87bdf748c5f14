/** IPC interface between a node and its workers: the processes that serve its public port. */
import type { Config } from "../../config/config.js";
import type { EdgeStats, SharedUsage } from "../../edge/edge.js";
import type { OverloadLimits } from "../../edge/concurrency.js";
import type { ProcessErrors } from "../../health/process-errors.js";
import type { HistoryPoint } from "../../metrics/history.js";
import type { RequestCounts } from "../../metrics/metrics.js";
import type { ListenAddress } from "../../rpc/port/listen.js";
import type { Forwarding } from "../../workers/forward.js";

/** Data that a worker receives at its start. */
export interface WorkerStart {
  readonly config: Config;
  readonly overload: OverloadLimits | undefined;
  readonly stateHeadEveryMs: number;
}

/** Data that a worker receives once the node has booted. */
export interface WorkerBooted {
  /** Public key of the node: 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** False if the node could not read its chain. The worker then reports nothing about the chain in the database. */
  readonly hasChain: boolean;
  /** Latest signed head of an authority, encoded as a SignedHead. */
  readonly headStatement: Uint8Array | undefined;
  /** Points of the history over the last day. */
  readonly history: readonly HistoryPoint[];
}

/** Resource usage of a worker, reported once a second. */
export interface WorkerVitals {
  readonly residentBytes: number;
  /** Processor time in seconds since the start of the worker. */
  readonly cpuSeconds: number;
}

/** Log line of a worker. */
export interface WorkerLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: object;
  readonly message: string;
}

/** Functions of a node that a worker calls. */
export interface NodeHandlers extends Forwarding {
  readonly notifications: {
    usage(usage: SharedUsage): void;
    vitals(vitals: WorkerVitals): void;
    log(line: WorkerLine): void;
    /** Reports the corruption that the worker has found in the database; undefined once none is left. */
    corruption(message: string | undefined): void;
    /** Reports an uncaught error. */
    uncaught(error: { readonly kind: Parameters<ProcessErrors["count"]>[0]; readonly message: string }): void;
  };
}

/** Functions of a worker that its node calls. */
export interface WorkerHandlers {
  readonly calls: {
    /** Binds the port. */
    start(options: { readonly start: WorkerStart; readonly address: ListenAddress }): Promise<void>;
    /** Makes all services available. */
    serve(booted: WorkerBooted): Promise<void>;
    /** Finishes requests in progress, for up to `graceMs`, and ends the process. */
    drain(graceMs: number): Promise<void>;
    /** Returns the usage of the worker's clients. */
    edgeStats(none: undefined): EdgeStats;
    /** Returns the requests of the worker, counted by protocol, rpc and outcome. */
    requests(none: undefined): Promise<RequestCounts>;
  };
  readonly streams: Readonly<Record<string, never>>;
  readonly notifications: {
    usage(usage: SharedUsage): void;
    /** Notifies the worker of a new block. */
    block(none: undefined): void;
    /** Passes on a new signed head of an authority, encoded as a SignedHead. */
    headStated(signed: Uint8Array): void;
    /** Notifies the worker of a permanently rejected transaction. */
    rejected(rejection: { readonly hash: string; readonly reason: string }): void;
    /** Passes on a new point of the history. */
    historyTaken(point: HistoryPoint): void;
    /** Requests that the worker reload files that may have changed. */
    reload(none: undefined): void;
  };
}
