/** Schedules tasks fairly: urgent tasks first, then one task of each requester in rotation. */

/** Limits on the waiting tasks, in total and of one requester: as many as complete within some seconds. */
const maxWaiting = 256;
const maxWaitingOfOne = 16;

export interface SchedulerDeps<Task, Result> {
  readonly run: (task: Task) => Promise<Result>;
  /** Maximum number of tasks that run at the same time. */
  readonly atOnce: number;
  /** Returns true if the tasks of this requester wait until no other requester has tasks. */
  readonly isLast: (requester: string) => boolean;
  /** Creates the error for a task that exceeds the limits. */
  readonly refuse: () => Error;
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

interface Piece<Task, Result> {
  readonly name: string;
  readonly task: Task;
  readonly result: Promise<Result>;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** Requester in whose queue the task waits; undefined if the task is urgent or running. */
  requester: string | undefined;
}

function createPiece<Task, Result>(name: string, task: Task): Piece<Task, Result> {
  let resolve!: Piece<Task, Result>["resolve"];
  let reject!: Piece<Task, Result>["reject"];
  const result = new Promise<Result>((...settle) => ([resolve, reject] = settle));
  return { name, task, result, resolve, reject, requester: undefined };
}

/** Creates the queues of waiting tasks: one for urgent tasks, and one for each requester. */
function createQueues<One extends { requester: string | undefined }>(isLast: (requester: string) => boolean) {
  const urgent: One[] = [];
  /** Queues by requester, in the order of their turns. No queue is empty. */
  const queues = new Map<string, One[]>();
  let waiting = 0;

  const lengthOf = (requester: string): number => queues.get(requester)?.length ?? 0;

  /** Returns a number that grows with the waiting time of the requester's next task. */
  const waitOf = (requester: string): number => lengthOf(requester) + (isLast(requester) ? maxWaiting : 0);

  /** Removes a task from the queue of its requester. */
  function remove(piece: One): void {
    const queue = queues.get(piece.requester!)!;
    queue.splice(queue.indexOf(piece), 1);
    if (queue.length === 0) {
      queues.delete(piece.requester!);
    }
    piece.requester = undefined;
    waiting--;
  }

  return {
    lengthOf,
    waitOf,
    remove,
    /** Returns the number of waiting tasks that are not urgent. */
    waiting: () => waiting,

    add(piece: One, requester: string | undefined): void {
      piece.requester = requester;
      if (requester === undefined) {
        urgent.push(piece);
        return;
      }
      queues.set(requester, [...(queues.get(requester) ?? []), piece]);
      waiting++;
    },

    /** Removes and returns the next task. Its requester moves to the end of the rotation. */
    next(): One | undefined {
      const first = urgent.shift();
      if (first !== undefined || waiting === 0) {
        return first;
      }
      const requesters = [...queues.keys()];
      const requester = requesters.find((one) => !isLast(one)) ?? requesters[0]!;
      const queue = queues.get(requester)!;
      const piece = queue[0]!;
      remove(piece);
      if (queue.length > 0) {
        queues.delete(requester);
        queues.set(requester, queue);
      }
      return piece;
    },

    /**
     * Returns the latest task of the requester with the longest wait, if that wait would still exceed the wait of a new
     * task by `requester`; otherwise undefined.
     */
    surplus(requester: string): One | undefined {
      let longest = { wait: waitOf(requester) + 1, queue: undefined as One[] | undefined };
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
  const { run, atOnce, isLast, refuse } = deps;
  const pieces = new Map<string, Piece<Task, Result>>();
  const queues = createQueues<Piece<Task, Result>>(isLast);
  let underWay = 0;

  function makeCapacity(requester: string): void {
    if (queues.lengthOf(requester) >= maxWaitingOfOne) {
      throw refuse();
    }
    if (queues.waiting() >= maxWaiting) {
      const piece = queues.surplus(requester);
      if (piece === undefined) {
        throw refuse();
      }
      queues.remove(piece);
      pieces.delete(piece.name);
      piece.reject(refuse());
    }
  }

  function start(): void {
    while (underWay < atOnce) {
      const piece = queues.next();
      if (piece === undefined) {
        return;
      }
      underWay++;
      void run(piece.task)
        .then(piece.resolve, piece.reject)
        .finally(() => {
          underWay--;
          pieces.delete(piece.name);
          start();
        });
    }
  }

  return {
    async schedule(name, task, requester) {
      let piece = pieces.get(name);
      if (piece === undefined) {
        if (requester !== undefined) {
          makeCapacity(requester);
        }
        piece = createPiece(name, task);
        pieces.set(name, piece);
        queues.add(piece, requester);
        start();
      } else if (
        piece.requester !== undefined &&
        (requester === undefined || queues.waitOf(requester) + 1 < queues.waitOf(piece.requester))
      ) {
        // Moves the task to the requester that gets it sooner. Otherwise, others who know a task could delay it by
        // requesting it first.
        queues.remove(piece);
        queues.add(piece, requester);
      }
      return await piece.result;
    },
  };
}
