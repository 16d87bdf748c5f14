/** How far the boot is. A step that has the name of a subsystem moves that subsystem too. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type BootSchema, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { makeImmutable } from "../base/caches/immutable.js";
import { errorMessage } from "../base/errors/error-message.js";
import { isSubsystemName, type Subsystems } from "./subsystems.js";

/** How far the boot is, as the contract shows it. */
export type BootState = MessageInitShape<typeof BootSchema> & { readonly complete: boolean };

/** The steps of a boot as they are taken. */
export interface BootProgress {
  /** Takes a step: ready with what `run` gives; failed, and rejected, with what it throws. */
  take<T>(name: string, run: () => T | Promise<T>): Promise<T>;
  /** Leaves a step out. It may be taken after all, once the boot is over. */
  leaveOut(name: string, reason: string): void;
  /** The same object until something changes, immutable. */
  state(): BootState;
}

/** The progress of a boot of so many steps, none taken. */
export function createBootProgress(stepsTotal: number, subsystems: Subsystems): BootProgress {
  const counts = { stepsReady: 0, stepsFailed: 0 };
  const leftOut = new Set<string>();
  /** For good: steps that are taken after the boot do not begin it again. */
  let complete = false;
  let state = describe(undefined);

  function describe(current: string | undefined): BootState {
    complete ||= counts.stepsReady + counts.stepsFailed + leftOut.size === stepsTotal;
    return makeImmutable({
      complete,
      stepsTotal,
      ...counts,
      stepsSkipped: leftOut.size,
      current,
    });
  }

  function move(name: string, change: Parameters<Subsystems["set"]>[1]): void {
    if (isSubsystemName(name)) {
      subsystems.set(name, change);
    }
  }

  return {
    async take(name, run) {
      leftOut.delete(name);
      state = describe(name);
      move(name, { status: SubsystemStatus.RUNNING });
      try {
        const result = await run();
        counts.stepsReady++;
        state = describe(undefined);
        move(name, { status: SubsystemStatus.READY });
        return result;
      } catch (error) {
        counts.stepsFailed++;
        state = describe(undefined);
        move(name, { status: SubsystemStatus.FAILED, error: { message: errorMessage(error), source: "boot" } });
        throw error;
      }
    },
    leaveOut(name, reason) {
      leftOut.add(name);
      state = describe(undefined);
      move(name, { status: SubsystemStatus.SKIPPED, extra: { reason } });
    },
    state: () => state,
  };
}
