/** Work that is done in turns: first what is urgent, then a piece of each of those who asked for it. */

/** Most pieces that wait, and most of one who asked: as many as are done in some seconds. */
const maxWaiting = 256;
const maxWaitingOfOne = 16;

/** What turns need. */
export interface TurnsDeps<Task, Result> {
  readonly run: (task: Task) => Promise<Result>;
  /** How many pieces are done at a time. */
  readonly atOnce: number;
  /** Whether this one's pieces wait until nobody else's do. */
  readonly isLast: (askedBy: string) => boolean;
  /** What a piece that finds no room is refused with. */
  readonly refuse: () => Error;
}

/** The turns. */
export interface FairScheduler<Task, Result> {
  /**
   * Does a piece of work in its turn; a piece of the same name that waits or is under way is joined.
   *
   * @param askedBy undefined for what is urgent: it comes first, and is never refused.
   */
  take(name: string, task: Task, askedBy: string | undefined): Promise<Result>;
}

interface Piece<Task, Result> {
  readonly name: string;
  readonly task: Task;
  readonly result: Promise<Result>;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** In whose queue it waits; undefined for what is urgent, or under way. */
  askedBy: string | undefined;
}

function createPiece<Task, Result>(name: string, task: Task): Piece<Task, Result> {
  let resolve!: Piece<Task, Result>["resolve"];
  let reject!: Piece<Task, Result>["reject"];
  const result = new Promise<Result>((...settle) => ([resolve, reject] = settle));
  return { name, task, result, resolve, reject, askedBy: undefined };
}

/** Pieces that wait: the urgent ones, and a queue of each who asked. */
function createQueues<One extends { askedBy: string | undefined }>(isLast: (askedBy: string) => boolean) {
  const urgent: One[] = [];
  /** By who asked, in the order of their turns; nobody's is empty. */
  const queues = new Map<string, One[]>();
  let waiting = 0;

  const lengthOf = (askedBy: string): number => queues.get(askedBy)?.length ?? 0;

  /** How long somebody's next piece would wait, in comparison. */
  const waitOf = (askedBy: string): number => lengthOf(askedBy) + (isLast(askedBy) ? maxWaiting : 0);

  /** Takes a piece out of the queue that it waits in. */
  function remove(piece: One): void {
    const queue = queues.get(piece.askedBy!)!;
    queue.splice(queue.indexOf(piece), 1);
    if (queue.length === 0) {
      queues.delete(piece.askedBy!);
    }
    piece.askedBy = undefined;
    waiting--;
  }

  return {
    lengthOf,
    waitOf,
    remove,
    /** How many wait that are not urgent. */
    waiting: () => waiting,

    add(piece: One, askedBy: string | undefined): void {
      piece.askedBy = askedBy;
      if (askedBy === undefined) {
        urgent.push(piece);
        return;
      }
      queues.set(askedBy, [...(queues.get(askedBy) ?? []), piece]);
      waiting++;
    },

    /** Takes out the piece whose turn it is. Whoever had a turn is the last one to have another. */
    next(): One | undefined {
      const first = urgent.shift();
      if (first !== undefined || waiting === 0) {
        return first;
      }
      const askers = [...queues.keys()];
      const askedBy = askers.find((one) => !isLast(one)) ?? askers[0]!;
      const queue = queues.get(askedBy)!;
      const piece = queue[0]!;
      remove(piece);
      if (queue.length > 0) {
        queues.delete(askedBy);
        queues.set(askedBy, queue);
      }
      return piece;
    },

    /** The newest piece of who takes most room, if that is more than the next one of this asker would take. */
    surplus(askedBy: string): One | undefined {
      let longest = { wait: waitOf(askedBy) + 1, queue: undefined as One[] | undefined };
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

/** Builds them. */
export function createFairScheduler<Task, Result>(deps: TurnsDeps<Task, Result>): FairScheduler<Task, Result> {
  const { run, atOnce, isLast, refuse } = deps;
  const pieces = new Map<string, Piece<Task, Result>>();
  const queues = createQueues<Piece<Task, Result>>(isLast);
  let underWay = 0;

  function makeRoom(askedBy: string): void {
    if (queues.lengthOf(askedBy) >= maxWaitingOfOne) {
      throw refuse();
    }
    if (queues.waiting() >= maxWaiting) {
      const piece = queues.surplus(askedBy);
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
    async take(name, task, askedBy) {
      let piece = pieces.get(name);
      if (piece === undefined) {
        if (askedBy !== undefined) {
          makeRoom(askedBy);
        }
        piece = createPiece(name, task);
        pieces.set(name, piece);
        queues.add(piece, askedBy);
        start();
      } else if (
        piece.askedBy !== undefined &&
        (askedBy === undefined || queues.waitOf(askedBy) + 1 < queues.waitOf(piece.askedBy))
      ) {
        // It waits with who gets it sooner: others who know a piece cannot delay it by asking for it first.
        queues.remove(piece);
        queues.add(piece, askedBy);
      }
      return await piece.result;
    },
  };
}
