/** Checks behind `/livez` and `/readyz`. Each has a name, so that an orchestrator can list or exclude it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ProbeReportSchema, ProbeStatus, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { invalidValue } from "../rpc/parameters.js";
import type { HealthSnapshot } from "./snapshot.js";

/** Check of a probe: returns undefined if it passes, otherwise the reason of the failure. */
export type ProbeCheck = () => string | undefined;

/** Checks by name, in listing order. */
export type Checks = Readonly<Record<string, ProbeCheck>>;

/**
 * Runs all checks except the excluded ones. The report lists the failing checks, or every check if `verbose` is set.
 *
 * @throws RpcError INVALID_REQUEST if an excluded name is not a check.
 */
export function runChecks(
  checks: Checks,
  request: { readonly verbose: boolean; readonly exclude: readonly string[] },
): MessageInitShape<typeof ProbeReportSchema> {
  const names = Object.keys(checks);
  const unknown = request.exclude.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw invalidValue("exclude", `one of ${names.join(", ")}`, unknown);
  }
  const results = names
    .filter((name) => !request.exclude.includes(name))
    .map((name) => {
      const message = checks[name]!();
      return { name, status: message === undefined ? ProbeStatus.OK : ProbeStatus.FAILING, message };
    });
  const failing = results.filter((check) => check.status === ProbeStatus.FAILING);
  return {
    status: failing.length === 0 ? ProbeStatus.OK : ProbeStatus.FAILING,
    checks: request.verbose ? results : failing,
  };
}

/** Sources of readiness that the health snapshot lacks. */
export interface ReadinessSources {
  /** Returns true if the main loop exited or missed its heartbeat. */
  readonly isMainLoopStalled: () => boolean;
  /** Returns true if the node is shutting down and accepts no new traffic. */
  readonly isStopping: () => boolean;
}

/** Creates the readiness checks of a snapshot. */
export function createReadiness({
  isMainLoopStalled,
  isStopping,
}: ReadinessSources): (snapshot: HealthSnapshot) => Checks {
  return (snapshot) => ({
    stopping: () => (isStopping() ? "the node is shutting down" : undefined),
    boot: () => (snapshot.boot?.complete === true ? undefined : "the node is still booting"),
    // A node that forms its network alone has no peers, but accepts transactions and is ready.
    dormant: () =>
      snapshot.dormant === true && snapshot.accepting !== true ? "the node is dormant: it has no peers" : undefined,
    database: () => (snapshot.mempoolSize === undefined ? "the database does not respond" : undefined),
    chain: () => (snapshot.subsystems?.chain?.status === SubsystemStatus.READY ? undefined : "the chain is not ready"),
    main_loop: () => (isMainLoopStalled() ? "the main loop is dead" : undefined),
    accepting: () => (snapshot.accepting === true ? undefined : "the node is not synced"),
  });
}
