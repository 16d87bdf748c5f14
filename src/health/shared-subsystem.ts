/** A subsystem of which several parties tell: it is ready while all of them are well, and failed while one is not. */
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { SubsystemName, Subsystems } from "./subsystems.js";

/** A subsystem that several tell of. */
export interface SharedSubsystem {
  /** A party is in trouble (why), or well again (undefined). */
  tell(party: string, trouble: string | undefined): void;
}

export function shareSubsystem(subsystems: Subsystems, name: SubsystemName): SharedSubsystem {
  const troubles = new Map<string, string>();
  /** As it was before the first trouble. */
  let before = subsystems.get(name);
  return {
    tell(party, trouble) {
      if (trouble !== undefined) {
        before = troubles.size === 0 ? subsystems.get(name) : before;
        troubles.set(party, trouble);
      } else if (!troubles.delete(party)) {
        // Whoever was well all along changes nothing.
        return;
      }
      const [first] = troubles;
      if (first === undefined) {
        // What was left out has not come by that.
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
