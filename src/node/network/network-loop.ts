/** Main loop of a node, as its subsystem shows it: its liveness, the errors of its tasks, and the progress of syncs. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { isDatabaseBusy } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { type PeriodicTask, startPeriodicTask } from "../../base/async/periodic-task.js";
import { createErrorThrottle, type ErrorThrottle } from "../../base/logging/error-throttle.js";
import { createMainLoop, type LoopTask, type MainLoop } from "../../peers/sync/main-loop.js";
import type { SyncProgress } from "../../peers/sync/sync.js";
import type { SnapshotSyncProgress } from "../../snapshot/sync.js";
import type { NodeCore } from "../lifecycle/core.js";

const progressEveryMs = 1_000;
const logEveryMs = 10_000;

/** Counts, logs and shows the error of a task. Ignores a busy database, because the task soon runs again. */
export type TaskErrors = (task: string, error: unknown) => void;

export function createTaskErrors({ subsystems, log }: Pick<NodeCore, "log" | "subsystems">): TaskErrors {
  let taskErrors = 0n;
  const throttles = new Map<string, ErrorThrottle>();
  return (task, error) => {
    if (isDatabaseBusy(error)) {
      return;
    }
    taskErrors++;
    let throttle = throttles.get(task);
    if (throttle === undefined) {
      throttle = createErrorThrottle({ log, fields: { subsystem: "main_loop", task }, message: `Task ${task} failed` });
      throttles.set(task, throttle);
    }
    throttle.failed(error);
    const message = `Task ${task}: ${errorMessage(error)}`;
    subsystems.set("main_loop", { error: { message, source: task }, extra: { taskErrors } });
  };
}

/** Tasks of the loop, and the limit on their time. */
export interface NodeLoopDeps {
  readonly tasks: readonly LoopTask[];
  readonly tickDeadlineMs: number;
  readonly onTaskError: TaskErrors;
}

export function createNodeLoop(
  { config, subsystems, lifecycle }: Pick<NodeCore, "config" | "lifecycle" | "subsystems">,
  deps: NodeLoopDeps,
): MainLoop {
  return createMainLoop({
    ...deps,
    intervalMs: config.loopIntervalMs,
    nowMs: () => performance.now(),
    onLivenessChange(exitReason) {
      if (exitReason === undefined) {
        subsystems.set("main_loop", { status: SubsystemStatus.READY });
      } else if (lifecycle.isStopping()) {
        subsystems.set("main_loop", { status: SubsystemStatus.SKIPPED, extra: { reason: exitReason } });
      } else {
        subsystems.set("main_loop", {
          status: SubsystemStatus.FAILED,
          error: { message: exitReason, source: "main_loop" },
        });
      }
    },
  });
}

/** Shows the progress of syncs each second, and logs it at most every 10 s. */
export function reportProgress(
  { subsystems, log }: Pick<NodeCore, "log" | "subsystems">,
  progress: {
    readonly sync: () => SyncProgress | undefined;
    readonly snapshotSync: () => SnapshotSyncProgress | undefined;
  },
  onTaskError: TaskErrors,
): PeriodicTask {
  let loggedMs = 0;
  return startPeriodicTask(
    () => {
      const [sync, loading] = [progress.sync(), progress.snapshotSync()];
      const snapshot = loading && {
        ...{ ...loading, doneBytes: BigInt(loading.doneBytes), totalBytes: BigInt(loading.totalBytes) },
      };
      subsystems.set("main_loop", { extra: { sync, snapshot } });
      const message = loading === undefined ? sync && progressMessage(sync) : snapshotProgressMessage(loading);
      if (message !== undefined && Date.now() - loggedMs >= logEveryMs) {
        loggedMs = Date.now();
        log.info({ subsystem: "main_loop", public: true }, message);
      }
      return Promise.resolve();
    },
    progressEveryMs,
    (error) => onTaskError("progress", error),
  );
}

function snapshotProgressMessage({ block, doneBytes, totalBytes, bytesPerS, leftS }: SnapshotSyncProgress): string {
  const mebibyte = 1024 * 1024;
  const left = leftS === undefined ? "" : `, ${Math.ceil(leftS)} s left`;
  const done = `${(doneBytes / mebibyte).toFixed(1)} of ${(totalBytes / mebibyte).toFixed(1)} MiB`;
  return `Loading the snapshot of block ${block}: ${done}, ${(bytesPerS / mebibyte).toFixed(1)}/s${left}`;
}

function progressMessage({ block, targetBlock, blocksPerS, leftS }: SyncProgress): string {
  const left = leftS === undefined ? "" : `, ${Math.ceil(leftS)} s left`;
  return `Catching up: block ${block} of ${targetBlock}, ${blocksPerS}/s${left}`;
}
