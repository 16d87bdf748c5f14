/** The one registry of the node's subsystems. Whatever reports their state reads it from here. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type SubsystemExtraSchema, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { makeImmutable } from "../base/caches/immutable.js";
import type { ErrorEvent } from "./process-errors.js";

interface Declaration {
  /**
   * What its failure makes of the node's status; that of the main loop follows from its heartbeat, which also tells
   * what nobody could report.
   */
  readonly whenFailed: "failing" | "degraded" | "by heartbeat";
  /** Another process may report it to the control service: it runs all of it, or a part of it. */
  readonly isReportable?: true;
}

/**
 * The subsystems of the specification, in the order in which they are listed. Each has a step of the boot by its name
 * (src/node/boot.ts), which moves it; whoever runs it moves it afterwards.
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

/** What failed subsystems make of the node's status. */
export function consequencesOf(states: Readonly<Record<SubsystemName, SubsystemState>>): {
  readonly isFailing: boolean;
  readonly isDegraded: boolean;
} {
  const failed = subsystemNames.filter((name) => states[name].status === SubsystemStatus.FAILED);
  const haveFailed = (consequence: Declaration["whenFailed"]): boolean =>
    failed.some((name) => declarations[name].whenFailed === consequence);
  return { isFailing: haveFailed("failing"), isDegraded: haveFailed("degraded") };
}

/** A change of a subsystem; what is left out stays as it is. */
export interface SubsystemChange {
  readonly status?: SubsystemStatus;
  readonly port?: number;
  readonly requestedPort?: number;
  readonly enabled?: boolean;
  /** What went wrong; kept until the next error. */
  readonly error?: { readonly message: string; readonly source?: string };
  /** More about it, member by member; all of it is gone with the next status. */
  readonly extra?: SubsystemExtra;
}

/** More about a subsystem, with the fields of the contract's `SubsystemExtra` message. */
export type SubsystemExtra = Readonly<Omit<MessageInitShape<typeof SubsystemExtraSchema>, "$typeName">>;

/** A subsystem, with the fields of the contract's `Subsystem` message. */
export interface SubsystemState {
  readonly status: SubsystemStatus;
  readonly sinceMs: bigint | undefined;
  readonly port: number | undefined;
  readonly requestedPort: number | undefined;
  readonly lastError: ErrorEvent | undefined;
  readonly enabled: boolean;
  readonly extra: SubsystemExtra | undefined;
}

const untouched: SubsystemState = makeImmutable({
  status: SubsystemStatus.PENDING,
  sinceMs: undefined,
  port: undefined,
  requestedPort: undefined,
  lastError: undefined,
  enabled: true,
  extra: undefined,
});

export interface Subsystems {
  get(name: SubsystemName): SubsystemState;
  /** All of them by name, in the order of {@link subsystemNames}. The same object until something changes, immutable. */
  all(): Readonly<Record<SubsystemName, SubsystemState>>;
  /** Applies a change, if it is one. `since` moves only when the status becomes another one. */
  set(name: SubsystemName, change: SubsystemChange): void;
}

/**
 * A registry in which every subsystem is pending and enabled.
 *
 * @param onTransition hears of every change of a status, after it.
 */
export function createSubsystems(
  nowMs: () => number,
  onTransition: (name: SubsystemName, state: SubsystemState) => void = () => undefined,
): Subsystems {
  let states = makeImmutable(
    Object.fromEntries(subsystemNames.map((name) => [name, untouched])) as Record<SubsystemName, SubsystemState>,
  );

  return {
    get: (name) => states[name],
    all: () => states,
    set(name, change) {
      const before = states[name];
      const { status = before.status, port, requestedPort, enabled, error, extra } = change;
      const moved = status !== before.status;
      const after: SubsystemState = makeImmutable({
        ...before,
        status,
        sinceMs: moved ? BigInt(nowMs()) : before.sinceMs,
        port: port ?? before.port,
        requestedPort: requestedPort ?? before.requestedPort,
        enabled: enabled ?? before.enabled,
        lastError: error === undefined ? before.lastError : { atMs: BigInt(nowMs()), source: undefined, ...error },
        extra: mergeExtra(moved ? undefined : before.extra, extra),
      });
      if (isSame(before, after)) {
        return;
      }
      states = makeImmutable({ ...states, [name]: after });
      if (moved) {
        onTransition(name, after);
      }
    },
  };
}

/** Nothing in `after` is another value than in `before`. */
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
