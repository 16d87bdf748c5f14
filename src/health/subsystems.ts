/** Registry of the node's subsystems, and the only source of their states. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type PortSchema,
  type SubsystemExtraSchema,
  SubsystemStatus,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import { makeImmutable } from "../base/caches/immutable.js";
import type { ErrorEvent } from "./process-errors.js";

interface Declaration {
  /**
   * Effect of a failure on the node's status. Heartbeats decide the effect of the main loop, since they also reveal a
   * hang that no code could report.
   */
  readonly whenFailed: "failing" | "degraded" | "by heartbeat";
  /** True if another process runs the subsystem, or a part of it, and may report it to the control service. */
  readonly isReportable?: true;
}

/**
 * Subsystems of the specification, in listing order. Each has a boot step of the same name (node/lifecycle/boot-steps.ts) that sets
 * its status. After the boot, the code that runs the subsystem sets the status.
 */
const declarations = {
  chain: { whenFailed: "failing", isReportable: true },
  rpc: { whenFailed: "degraded" },
  metrics: { whenFailed: "degraded" },
  signaling: { whenFailed: "degraded", isReportable: true },
  mcp: { whenFailed: "degraded" },
  tlsnotary: { whenFailed: "degraded" },
  omni: { whenFailed: "degraded" },
  dtr: { whenFailed: "degraded" },
  l2ps: { whenFailed: "degraded", isReportable: true },
  main_loop: { whenFailed: "by heartbeat" },
} as const satisfies Record<string, Declaration>;

export type SubsystemName = keyof typeof declarations;

export const subsystemNames = Object.keys(declarations) as SubsystemName[];

export type ReportableName = {
  [Name in SubsystemName]: (typeof declarations)[Name] extends { readonly isReportable: true } ? Name : never;
}[SubsystemName];

export const reportableNames = subsystemNames.filter(
  (name): name is ReportableName => "isReportable" in declarations[name],
);

export function isSubsystemName(name: string): name is SubsystemName {
  return Object.hasOwn(declarations, name);
}

type SubsystemStates = Readonly<Record<SubsystemName, SubsystemState>>;

/** Returns the effect of the failed subsystems on the node's status, and the ports that subsystems have bound. */
function summarize(states: SubsystemStates) {
  const failed = subsystemNames.filter((name) => states[name].status === SubsystemStatus.FAILED);
  const haveFailed = (consequence: Declaration["whenFailed"]): boolean =>
    failed.some((name) => declarations[name].whenFailed === consequence);
  return makeImmutable({
    isFailing: haveFailed("failing"),
    isDegraded: haveFailed("degraded"),
    ports: makeImmutable(portsOf(states)),
  });
}

/** Lists ports by subsystem. A missing `requestedPort` means that the subsystem got the port it requested. */
function portsOf(states: SubsystemStates): Record<string, MessageInitShape<typeof PortSchema>> {
  const ports: Record<string, MessageInitShape<typeof PortSchema>> = {};
  for (const [name, { port, requestedPort }] of Object.entries(states)) {
    if (port !== undefined) {
      const requested = requestedPort ?? port;
      ports[name] = { requested, actual: port, drifted: requested !== port };
    }
  }
  return ports;
}

export interface SubsystemChange {
  readonly status?: SubsystemStatus;
  readonly port?: number;
  readonly requestedPort?: number;
  readonly enabled?: boolean;
  /** Error to record; null if its cause is gone. A new status READY or SKIPPED clears the error as well. */
  readonly error?: { readonly message: string; readonly source?: string } | null;
  /** Details to merge into the present ones, field by field. A new status clears the details. */
  readonly extra?: SubsystemExtra;
}

export type SubsystemExtra = Readonly<Omit<MessageInitShape<typeof SubsystemExtraSchema>, "$typeName">>;

export interface SubsystemState {
  readonly status: SubsystemStatus;
  readonly sinceMs: bigint | undefined;
  readonly port: number | undefined;
  readonly requestedPort: number | undefined;
  readonly lastError: ErrorEvent | undefined;
  readonly enabled: boolean;
  readonly extra: SubsystemExtra | undefined;
}

/** Statuses that mean that the cause of an earlier error is gone. */
const statusesWithoutError: ReadonlySet<SubsystemStatus> = new Set([SubsystemStatus.READY, SubsystemStatus.SKIPPED]);

const initialState: SubsystemState = makeImmutable({
  status: SubsystemStatus.PENDING,
  sinceMs: undefined,
  port: undefined,
  requestedPort: undefined,
  lastError: undefined,
  enabled: true,
  extra: undefined,
});

export type Subsystems = ReturnType<typeof createSubsystems>;

/**
 * Creates a registry in which every subsystem is pending and enabled.
 *
 * @param onTransition Called after each change of a status.
 */
export function createSubsystems(
  nowMs: () => number,
  onTransition: (name: SubsystemName, state: SubsystemState) => void = () => undefined,
) {
  let states: SubsystemStates = makeImmutable(
    Object.fromEntries(subsystemNames.map((name) => [name, initialState])) as SubsystemStates,
  );
  let summary = summarize(states);

  return {
    get: (name: SubsystemName) => states[name],
    /**
     * Returns the states by name, in the order of {@link subsystemNames}. Immutable, and the same object until a state
     * changes.
     */
    all: () => states,
    /** Returns what follows from the states alone. Immutable, and the same object until a state changes. */
    summary: () => summary,
    /** Applies a change; a change without effect is ignored. `sinceMs` moves only with the status. */
    set(name: SubsystemName, change: SubsystemChange) {
      const before = states[name];
      const { status = before.status, port, requestedPort, enabled, error, extra } = change;
      const hasNewStatus = status !== before.status;
      const isOver = error === null || (hasNewStatus && statusesWithoutError.has(status));
      const after: SubsystemState = makeImmutable({
        ...before,
        status,
        sinceMs: hasNewStatus ? BigInt(nowMs()) : before.sinceMs,
        port: port ?? before.port,
        requestedPort: requestedPort ?? before.requestedPort,
        enabled: enabled ?? before.enabled,
        lastError: error
          ? { atMs: BigInt(nowMs()), source: undefined, ...error }
          : isOver
            ? undefined
            : before.lastError,
        extra: mergeExtra(hasNewStatus ? undefined : before.extra, extra),
      });
      if (isSame(before, after)) {
        return;
      }
      states = makeImmutable({ ...states, [name]: after });
      summary = summarize(states);
      if (hasNewStatus) {
        onTransition(name, after);
      }
    },
  };
}

function isSame<T extends object>(before: T, after: T): boolean {
  return Object.entries(after).every(([key, value]) => before[key as keyof T] === value);
}

function mergeExtra(
  before: SubsystemExtra | undefined,
  change: SubsystemExtra | undefined,
): SubsystemExtra | undefined {
  if (change === undefined || isSame(before ?? {}, change)) {
    return before;
  }
  const after: SubsystemExtra = { ...before, ...change };
  return Object.values(after).some((value: unknown) => value !== undefined) ? after : undefined;
}

export type SharedSubsystem = ReturnType<typeof shareSubsystem>;

/** Shares a subsystem: ready while every component is healthy, and failed otherwise. */
export function shareSubsystem(subsystems: Subsystems, name: SubsystemName) {
  const problems = new Map<string, string>();
  let initial = subsystems.get(name);
  return {
    /** Reports a problem of a component, or its recovery (undefined). */
    report(component: string, problem: string | undefined) {
      if (problem !== undefined) {
        initial = problems.size === 0 ? subsystems.get(name) : initial;
        problems.set(component, problem);
      } else if (!problems.delete(component)) {
        // A recovery without a preceding problem changes nothing.
        return;
      }
      const [first] = problems;
      if (first !== undefined) {
        const [source, message] = first;
        subsystems.set(name, { status: SubsystemStatus.FAILED, error: { message, source } });
        return;
      }
      // Recovery does not start a skipped subsystem: restore its skipped state.
      const { status, extra } = initial;
      subsystems.set(
        name,
        status === SubsystemStatus.SKIPPED ? { status, ...(extra && { extra }) } : { status: SubsystemStatus.READY },
      );
    },
  };
}
