/** Subsystem whose status several parties report. It is ready while every party is healthy, and failed otherwise. */
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { SubsystemName, Subsystems } from "./subsystems.js";

/** Status of a subsystem that several parties share. */
export interface SharedSubsystem {
  /** Reports a problem of a party, or its recovery (undefined). */
  report(party: string, problem: string | undefined): void;
}

export function shareSubsystem(subsystems: Subsystems, name: SubsystemName): SharedSubsystem {
  const problems = new Map<string, string>();
  /** State before the first problem. */
  let before = subsystems.get(name);
  return {
    report(party, problem) {
      if (problem !== undefined) {
        before = problems.size === 0 ? subsystems.get(name) : before;
        problems.set(party, problem);
      } else if (!problems.delete(party)) {
        // A recovery without a preceding problem changes nothing.
        return;
      }
      const [first] = problems;
      if (first === undefined) {
        // Recovery does not start a skipped subsystem: restore its skipped state.
        const { status, extra } = before;
        subsystems.set(
          name,
          status === SubsystemStatus.SKIPPED ? { status, ...(extra && { extra }) } : { status: SubsystemStatus.READY },
        );
      } else {
        const [source, message] = first;
        subsystems.set(name, { status: SubsystemStatus.FAILED, error: { message, source } });
      }
    },
  };
}
