/** Whether the state is there: while a snapshot is taken in, what the database holds is a part of it. */
import { Failure } from "../../rpc/errors.js";

export interface Joining {
  isUnderWay(): boolean;
  set(isUnderWay: boolean): void;
}

export function createJoining(begun: boolean): Joining {
  let isUnderWay = begun;
  return {
    isUnderWay: () => isUnderWay,
    set: (value) => void (isUnderWay = value),
  };
}

type Read = (...given: never[]) => unknown;

/** Reads of the state, each of which is refused while that is not there. */
export function onceThere<Reads extends object>(reads: Reads, joining: Joining): Reads {
  const guarded = Object.entries(reads).map(([name, read]: [string, Read]) => [
    name,
    (...given: never[]) => {
      if (joining.isUnderWay()) {
        throw new Failure("STATE_NOT_READY", "The node has no state yet: it takes in a snapshot. Ask another node.");
      }
      return read(...given);
    },
  ]);
  return Object.fromEntries(guarded) as Reads;
}
