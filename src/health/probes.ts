/** The checks behind `/livez` and `/readyz`: named, so that an orchestrator can list them and leave some out. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ProbeReportSchema, ProbeStatus, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { wrongValue } from "../rpc/parameters.js";
import type { HealthSnapshot } from "./snapshot.js";

/** A check: undefined when it passes, otherwise why it fails. */
export type ProbeCheck = () => string | undefined;

/** Checks by name, in the order in which they are listed. */
export type Checks = Readonly<Record<string, ProbeCheck>>;

/**
 * Runs all checks but the excluded ones. The report lists the failing ones, or all of them when `verbose`.
 *
 * @throws Failure INVALID_REQUEST for an excluded name that is no check.
 */
export function runChecks(
  checks: Checks,
  request: { readonly verbose: boolean; readonly exclude: readonly string[] },
): MessageInitShape<typeof ProbeReportSchema> {
  const names = Object.keys(checks);
  const unknown = request.exclude.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw wrongValue("exclude", `one of ${names.join(", ")}`, unknown);
  }
  const ran = names
    .filter((name) => !request.exclude.includes(name))
    .map((name) => {
      const message = checks[name]!();
      return { name, status: message === undefined ? ProbeStatus.OK : ProbeStatus.FAILING, message };
    });
  const failing = ran.filter((check) => check.status === ProbeStatus.FAILING);
  return {
    status: failing.length === 0 ? ProbeStatus.OK : ProbeStatus.FAILING,
    checks: request.verbose ? ran : failing,
  };
}

/** What readiness is made of. */
export interface ReadinessSources {
  /** The main loop exited or missed its heartbeat. */
  readonly isMainLoopDead: () => boolean;
  /** The node was told to stop and takes no new traffic. */
  readonly isStopping: () => boolean;
}

/** The checks of readiness, for a snapshot. */
export function createReadiness({
  isMainLoopDead,
  isStopping,
}: ReadinessSources): (snapshot: HealthSnapshot) => Checks {
  return (snapshot) => ({
    stopping: () => (isStopping() ? "the node is shutting down" : undefined),
    boot: () => (snapshot.boot?.complete === true ? undefined : "the node is still booting"),
    // One that is the network by itself takes part in it all the same.
    dormant: () =>
      snapshot.dormant === true && snapshot.accepting !== true ? "the node is dormant: it has no peers" : undefined,
    database: () => (snapshot.mempoolSize === undefined ? "the database does not answer" : undefined),
    chain: () => (snapshot.subsystems?.chain?.status === SubsystemStatus.READY ? undefined : "the chain is not ready"),
    main_loop: () => (isMainLoopDead() ? "the main loop is dead" : undefined),
    accepting: () => (snapshot.accepting === true ? undefined : "the node is not synced"),
  });
}
