/** Subsystem whose status several parties report. It is ready while every party is healthy, and failed otherwise. */
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { SubsystemName, Subsystems } from "./subsystems.js";

/** Status of a subsystem that several parties share. */
export interface SharedSubsystem {
  /** Reports a problem of a party, or its recovery (undefined). */
  tell(party: string, trouble: string | undefined): void;
}

export function shareSubsystem(subsystems: Subsystems, name: SubsystemName): SharedSubsystem {
  const troubles = new Map<string, string>();
  /** State before the first problem. */
  let before = subsystems.get(name);
  return {
    tell(party, trouble) {
      if (trouble !== undefined) {
        before = troubles.size === 0 ? subsystems.get(name) : before;
        troubles.set(party, trouble);
      } else if (!troubles.delete(party)) {
        // A recovery without a preceding problem changes nothing.
        return;
      }
      const [first] = troubles;
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
