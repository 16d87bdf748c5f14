/** Main loop of a node, as its subsystem shows it: its liveness, the errors of its tasks, and the progress of syncs. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { isDatabaseBusy } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { type PeriodicTask, startPeriodicTask } from "../../base/async/periodic-task.js";
import { createErrorThrottle, type ErrorThrottle } from "../../base/logging/error-throttle.js";
import { createMainLoop, type MainLoop, type MainLoopDeps } from "../../peers/sync/main-loop.js";
import type { Sync } from "../../peers/sync/sync.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeSnapshotSync } from "./snapshot-sync.js";

const progressEveryMs = 1_000;
const logEveryMs = 10_000;

export type TaskErrors = MainLoopDeps["onTaskError"];

/**
 * Creates the functions that count, log and show errors of tasks. An error is shown until a tick passes without one. A
 * busy database is ignored, because the task soon runs again.
 */
export function createTaskErrors({
  subsystems,
  log,
}: Pick<NodeCore, "log" | "subsystems">): Pick<MainLoopDeps, "onTaskError" | "onTick"> {
  let taskErrors = 0n;
  let errorsAtTick = 0n;
  const throttles = new Map<string, ErrorThrottle>();

  function onTaskError(task: string, error: unknown): void {
    if (isDatabaseBusy(error)) {
      return;
    }
    taskErrors++;
    const throttle =
      throttles.get(task) ??
      createErrorThrottle({ log, fields: { subsystem: "main_loop", task }, message: `Task ${task} failed` });
    throttles.set(task, throttle);
    throttle.failed(error);
    const message = `Task ${task}: ${errorMessage(error)}`;
    subsystems.set("main_loop", { error: { message, source: task }, extra: { taskErrors } });
  }

  function onTick(): void {
    // The error of a failed loop is that of its exit or stall.
    if (taskErrors === errorsAtTick && subsystems.get("main_loop").status === SubsystemStatus.READY) {
      subsystems.set("main_loop", { error: null });
    }
    errorsAtTick = taskErrors;
  }

  return { onTaskError, onTick };
}

export function createNodeLoop(
  { config, subsystems, lifecycle }: Pick<NodeCore, "config" | "lifecycle" | "subsystems">,
  deps: Pick<MainLoopDeps, "tasks" | "tickDeadlineMs" | "onTaskError" | "onTick">,
): MainLoop {
  return createMainLoop({
    ...deps,
    intervalMs: config.loopIntervalMs,
    nowMs: () => performance.now(),
    onLivenessChange(reason) {
      if (reason === undefined) {
        subsystems.set("main_loop", { status: SubsystemStatus.READY });
      } else if (lifecycle.isStopping()) {
        subsystems.set("main_loop", { status: SubsystemStatus.SKIPPED, extra: { reason } });
      } else {
        const error = { message: reason, source: "main_loop" };
        subsystems.set("main_loop", { status: SubsystemStatus.FAILED, error });
      }
    },
  });
}

/** Shows the progress of syncs each second, and logs it at most every 10 s. */
export function reportProgress(
  { subsystems, log }: Pick<NodeCore, "log" | "subsystems">,
  { sync, snapshotSync }: { readonly sync: Sync; readonly snapshotSync: NodeSnapshotSync | undefined },
  onTaskError: TaskErrors,
): PeriodicTask {
  let loggedMs = 0;
  function show(): void {
    const [blocks, snapshot] = [sync.progress(), snapshotSync?.progress()];
    subsystems.set("main_loop", { extra: { sync: blocks, snapshot } });
    const left = snapshot ?? blocks;
    if (left === undefined || Date.now() - loggedMs < logEveryMs) {
      return;
    }
    loggedMs = Date.now();
    const message = snapshot === undefined ? describeSync(blocks!) : describeSnapshotSync(snapshot);
    const leftText = left.leftS === undefined ? "" : `, ${Math.ceil(left.leftS)} s left`;
    log.info({ subsystem: "main_loop", public: true }, `${message}${leftText}`);
  }
  return startPeriodicTask(
    () => {
      show();
      return Promise.resolve();
    },
    progressEveryMs,
    (error) => onTaskError("progress", error),
  );
}

type Progress<Of extends { progress(): unknown }> = NonNullable<ReturnType<Of["progress"]>>;

function describeSnapshotSync({ block, doneBytes, totalBytes, bytesPerS }: Progress<NodeSnapshotSync>): string {
  const [done, total, perS] = [doneBytes, totalBytes, bytesPerS].map((bytes) =>
    (Number(bytes) / 1024 / 1024).toFixed(1),
  );
  return `Loading the snapshot of block ${block}: ${done} of ${total} MiB, ${perS}/s`;
}

function describeSync({ block, targetBlock, blocksPerS }: Progress<Sync>): string {
  return `Catching up: block ${block} of ${targetBlock}, ${blocksPerS}/s`;
}
