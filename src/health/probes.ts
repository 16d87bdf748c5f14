/** The checks behind `/livez` and `/readyz`: named, so that an orchestrator can list them and leave some out. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ProbeReportSchema, ProbeStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { Failure } from "../errors.js";

/** A check: undefined when it passes, otherwise why it fails. */
export type Check = () => string | undefined | Promise<string | undefined>;

/** Checks by name, in the order in which they are listed. */
export type Checks = Readonly<Record<string, Check>>;

/**
 * Runs all checks but the excluded ones. The report lists the failing ones, or all of them when `verbose`.
 *
 * @throws Failure INVALID_REQUEST for an excluded name that is no check.
 */
export async function runChecks(
  checks: Checks,
  request: { readonly verbose: boolean; readonly exclude: readonly string[] },
): Promise<MessageInitShape<typeof ProbeReportSchema>> {
  const names = Object.keys(checks);
  const unknown = request.exclude.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new Failure("INVALID_REQUEST", `exclude takes ${names.join(", ")}; "${unknown.slice(0, 80)}" is no check.`);
  }
  const ran = await Promise.all(
    names
      .filter((name) => !request.exclude.includes(name))
      .map(async (name) => {
        const message = await checks[name]!();
        return { name, status: message === undefined ? ProbeStatus.OK : ProbeStatus.FAILING, message };
      }),
  );
  const failing = ran.filter((check) => check.status === ProbeStatus.FAILING);
  return {
    status: failing.length === 0 ? ProbeStatus.OK : ProbeStatus.FAILING,
    checks: request.verbose ? ran : failing,
  };
}
