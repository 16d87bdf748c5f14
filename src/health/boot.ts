/** The boot: an ordered list of named steps. A step that has the name of a subsystem moves that subsystem too. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type BootSchema, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { messageOf } from "../base/message-of.js";
import { isSubsystemName, type Subsystems } from "./subsystems.js";

/** A boot under way. Its steps are taken in the order in which they were announced. */
export interface Boot {
  /** Takes a step: ready with what `run` gives; failed, and rejected with what `run` throws. */
  readonly step: <T>(name: string, run: () => T | Promise<T>) => Promise<T>;
  /** Takes a step that the node can live without: failed, and undefined, when `run` throws. */
  readonly tryStep: <T>(name: string, run: () => T | Promise<T>) => Promise<T | undefined>;
  /** Leaves a step out. */
  skip(name: string, reason: string): void;
  /** Takes a step that was left out, after the boot; otherwise as {@link tryStep}. */
  makeUp<T>(name: string, run: () => T | Promise<T>): Promise<T | undefined>;
  /** How far the boot is, as the contract shows it. The same object until something changes, frozen. */
  state(): BootState;
}

type BootState = MessageInitShape<typeof BootSchema> & { readonly complete: boolean };

/** A boot of the given steps, none taken. */
export function createBoot(names: readonly string[], subsystems: Subsystems): Boot {
  const counts = { ready: 0, failed: 0, skipped: 0 };
  const skipped = new Set<string>();
  let taken = 0;
  let state = describe(undefined);

  function describe(current: string | undefined): BootState {
    return Object.freeze({
      complete: taken === names.length,
      stepsTotal: names.length,
      stepsReady: counts.ready,
      stepsFailed: counts.failed,
      stepsSkipped: counts.skipped,
      current,
    });
  }

  function begin(name: string): void {
    if (names[taken] !== name) {
      throw new Error(`Boot step ${name} is out of order; ${names[taken] ?? "none"} was announced.`);
    }
    start(name);
  }

  function start(name: string): void {
    state = describe(name);
    move(name, SubsystemStatus.RUNNING);
  }

  function end(name: string, outcome: keyof typeof counts): void {
    counts[outcome]++;
    taken++;
    state = describe(undefined);
    if (outcome === "ready") {
      move(name, SubsystemStatus.READY);
    }
  }

  function move(name: string, status: SubsystemStatus): void {
    if (isSubsystemName(name)) {
      subsystems.set(name, { status });
    }
  }

  async function step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    begin(name);
    return await take(name, run);
  }

  async function take<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    try {
      const result = await run();
      end(name, "ready");
      return result;
    } catch (error) {
      end(name, "failed");
      if (isSubsystemName(name)) {
        subsystems.set(name, { status: SubsystemStatus.FAILED, error: { message: messageOf(error), source: "boot" } });
      }
      throw error;
    }
  }

  return {
    step,
    tryStep: (name, run) => step(name, run).catch(() => undefined),
    skip(name, reason) {
      begin(name);
      end(name, "skipped");
      skipped.add(name);
      if (isSubsystemName(name)) {
        subsystems.set(name, { status: SubsystemStatus.SKIPPED, extra: { reason } });
      }
    },
    async makeUp(name, run) {
      if (!skipped.delete(name)) {
        throw new Error(`Boot step ${name} was not left out, so it cannot be made up for.`);
      }
      counts.skipped--;
      taken--;
      start(name);
      return await take(name, run).catch(() => undefined);
    },
    state: () => state,
  };
}
