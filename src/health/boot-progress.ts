/** Progress of the boot. A step named after a subsystem also sets the status of that subsystem. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type BootSchema, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { makeImmutable } from "../base/caches/immutable.js";
import { errorMessage } from "../base/errors/error-message.js";
import { isSubsystemName, type Subsystems } from "./subsystems.js";

export type BootState = MessageInitShape<typeof BootSchema> & { readonly complete: boolean };

export type BootProgress = ReturnType<typeof createBootProgress>;

/** Creates the progress of a boot of `stepsTotal` steps, none of which has run. */
export function createBootProgress(stepsTotal: number, subsystems: Subsystems) {
  const counts = { stepsReady: 0, stepsFailed: 0 };
  const skipped = new Set<string>();
  /** Stays true once set: a step that runs after the boot does not reopen the boot. */
  let complete = false;
  let state = describe(undefined);

  function describe(current: string | undefined): BootState {
    complete ||= counts.stepsReady + counts.stepsFailed + skipped.size === stepsTotal;
    return makeImmutable({ complete, stepsTotal, ...counts, stepsSkipped: skipped.size, current });
  }

  function setSubsystem(name: string, change: Parameters<Subsystems["set"]>[1]): void {
    if (isSubsystemName(name)) {
      subsystems.set(name, change);
    }
  }

  return {
    /** Runs a step. Marks the step ready if `run` succeeds; otherwise marks it failed and rethrows the error. */
    async runStep<T>(name: string, run: () => T | Promise<T>): Promise<T> {
      skipped.delete(name);
      state = describe(name);
      setSubsystem(name, { status: SubsystemStatus.RUNNING });
      try {
        const result = await run();
        counts.stepsReady++;
        state = describe(undefined);
        setSubsystem(name, { status: SubsystemStatus.READY });
        return result;
      } catch (error) {
        counts.stepsFailed++;
        state = describe(undefined);
        setSubsystem(name, { status: SubsystemStatus.FAILED, error: { message: errorMessage(error), source: "boot" } });
        throw error;
      }
    },
    /** Marks a step as skipped. The step may still run after the boot. */
    skip(name: string, reason: string) {
      skipped.add(name);
      state = describe(undefined);
      setSubsystem(name, { status: SubsystemStatus.SKIPPED, extra: { reason } });
    },
    /** Returns the progress as an immutable object, which is the same object until a value changes. */
    state: () => state,
  };
}
