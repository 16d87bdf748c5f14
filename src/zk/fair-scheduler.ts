/** Schedules tasks fairly: urgent tasks first, then one task of each requester in rotation. */

/** Limits on the waiting tasks, in total and of one requester: as many as complete within some seconds. */
const maxWaiting = 256;
const maxWaitingOfOne = 16;

export interface SchedulerDeps<Task, Result> {
  readonly run: (task: Task) => Promise<Result>;
  /** Maximum number of tasks that run at the same time. */
  readonly maxRunning: number;
  /** Returns true if the tasks of this requester wait until no other requester has tasks. */
  readonly isLowPriority: (requester: string) => boolean;
  /** Creates the error for a task that exceeds the limits. */
  readonly createRejection: () => Error;
}

/** Scheduler that shares a limited number of parallel tasks among requesters. */
export interface FairScheduler<Task, Result> {
  /**
   * Runs a task when its turn comes. If a task of the same name is waiting or running, returns the result of that task.
   *
   * @param requester the requester; undefined for an urgent task, which runs first and is never rejected by the limits.
   */
  schedule(name: string, task: Task, requester: string | undefined): Promise<Result>;
}

interface QueuedTask<Task, Result> {
  readonly name: string;
  readonly task: Task;
  readonly result: Promise<Result>;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** Requester in whose queue the task waits; undefined if the task is urgent or running. */
  requester: string | undefined;
}

function createQueuedTask<Task, Result>(name: string, task: Task): QueuedTask<Task, Result> {
  let resolve!: QueuedTask<Task, Result>["resolve"];
  let reject!: QueuedTask<Task, Result>["reject"];
  const result = new Promise<Result>((...callbacks) => ([resolve, reject] = callbacks));
  return { name, task, result, resolve, reject, requester: undefined };
}

/** Creates the queues of waiting tasks: one for urgent tasks, and one for each requester. */
function createQueues<Item extends { requester: string | undefined }>(isLowPriority: (requester: string) => boolean) {
  const urgent: Item[] = [];
  /** Queues by requester, in the order of their turns. No queue is empty. */
  const queues = new Map<string, Item[]>();
  let waiting = 0;

  const lengthOf = (requester: string): number => queues.get(requester)?.length ?? 0;

  /** Returns a number that grows with the waiting time of the requester's next task. */
  const waitOf = (requester: string): number => lengthOf(requester) + (isLowPriority(requester) ? maxWaiting : 0);

  /** Removes a task from the queue of its requester. */
  function remove(queued: Item): void {
    const queue = queues.get(queued.requester!)!;
    queue.splice(queue.indexOf(queued), 1);
    if (queue.length === 0) {
      queues.delete(queued.requester!);
    }
    queued.requester = undefined;
    waiting--;
  }

  return {
    lengthOf,
    waitOf,
    remove,
    /** Returns the number of waiting tasks that are not urgent. */
    waiting: () => waiting,

    add(queued: Item, requester: string | undefined): void {
      queued.requester = requester;
      if (requester === undefined) {
        urgent.push(queued);
        return;
      }
      queues.set(requester, [...(queues.get(requester) ?? []), queued]);
      waiting++;
    },

    /** Removes and returns the next task. Its requester moves to the end of the rotation. */
    next(): Item | undefined {
      const first = urgent.shift();
      if (first !== undefined || waiting === 0) {
        return first;
      }
      const requesters = [...queues.keys()];
      const requester = requesters.find((candidate) => !isLowPriority(candidate)) ?? requesters[0]!;
      const queue = queues.get(requester)!;
      const queued = queue[0]!;
      remove(queued);
      if (queue.length > 0) {
        queues.delete(requester);
        queues.set(requester, queue);
      }
      return queued;
    },

    /**
     * Returns the latest task of the requester with the longest wait, if that wait would still exceed the wait of a new
     * task by `requester`; otherwise undefined.
     */
    evictionCandidate(requester: string): Item | undefined {
      let longest = { wait: waitOf(requester) + 1, queue: undefined as Item[] | undefined };
      for (const [one, queue] of queues) {
        const wait = waitOf(one);
        if (wait > longest.wait) {
          longest = { wait, queue };
        }
      }
      return longest.queue?.at(-1);
    },
  };
}

export function createFairScheduler<Task, Result>(deps: SchedulerDeps<Task, Result>): FairScheduler<Task, Result> {
  const { run, maxRunning, isLowPriority, createRejection } = deps;
  const queuedByName = new Map<string, QueuedTask<Task, Result>>();
  const queues = createQueues<QueuedTask<Task, Result>>(isLowPriority);
  let running = 0;

  function makeCapacity(requester: string): void {
    if (queues.lengthOf(requester) >= maxWaitingOfOne) {
      throw createRejection();
    }
    if (queues.waiting() >= maxWaiting) {
      const queued = queues.evictionCandidate(requester);
      if (queued === undefined) {
        throw createRejection();
      }
      queues.remove(queued);
      queuedByName.delete(queued.name);
      queued.reject(createRejection());
    }
  }

  function start(): void {
    while (running < maxRunning) {
      const queued = queues.next();
      if (queued === undefined) {
        return;
      }
      running++;
      void run(queued.task)
        .then(queued.resolve, queued.reject)
        .finally(() => {
          running--;
          queuedByName.delete(queued.name);
          start();
        });
    }
  }

  return {
    async schedule(name, task, requester) {
      let queued = queuedByName.get(name);
      if (queued === undefined) {
        if (requester !== undefined) {
          makeCapacity(requester);
        }
        queued = createQueuedTask(name, task);
        queuedByName.set(name, queued);
        queues.add(queued, requester);
        start();
      } else if (
        queued.requester !== undefined &&
        (requester === undefined || queues.waitOf(requester) + 1 < queues.waitOf(queued.requester))
      ) {
        // Moves the task to the requester that gets it sooner. Otherwise, others who know a task could delay it by
        // requesting it first.
        queues.remove(queued);
        queues.add(queued, requester);
      }
      return await queued.result;
    },
  };
}
