/** Subsystem whose status several components report: ready while every component is healthy, and failed otherwise. */
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { SubsystemName, Subsystems } from "./subsystems.js";

/** Status of a subsystem that several components share. */
export interface SharedSubsystem {
  /** Reports a problem of a component, or its recovery (undefined). */
  report(component: string, problem: string | undefined): void;
}

export function shareSubsystem(subsystems: Subsystems, name: SubsystemName): SharedSubsystem {
  const problems = new Map<string, string>();
  /** State before the first problem. */
  let initial = subsystems.get(name);
  return {
    report(component, problem) {
      if (problem !== undefined) {
        initial = problems.size === 0 ? subsystems.get(name) : initial;
        problems.set(component, problem);
      } else if (!problems.delete(component)) {
        // A recovery without a preceding problem changes nothing.
        return;
      }
      const [first] = problems;
      if (first === undefined) {
        // Recovery does not start a skipped subsystem: restore its skipped state.
        const { status, extra } = initial;
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
