/**
 * Verifies each proof once, even if several clients send it in several transactions. Proofs for blocks come first.
 * Clients that submit transactions are served in rotation. A client that recently sent an invalid proof is served last,
 * so that sending invalid proofs delays only that client.
 */
import { createHash } from "node:crypto";
import type { Groth16Proof } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { createLruCache } from "../base/caches/lru-cache.js";
import { RpcError } from "../rpc/errors.js";
import { proofBytes, type VerificationKey, type verifyGroth16 } from "./groth16.js";
import { toHex } from "./poseidon.js";
import type { ZkThreads } from "./worker-pool.js";

/** Limit on the cached results, so that a proof verified for a transaction is not verified again for its block. */
const maxCachedResults = 10_000;
/** Time in milliseconds for which the sender of an invalid proof is served last. */
const lowPriorityMs = 60_000;
const maxLowPriority = 10_000;
/** Limits on the waiting proofs, in total and of one requester: as many as complete within some seconds. */
const maxWaiting = 256;
const maxWaitingOfOne = 16;

/** Turn of a proof. Each requester has one proof in each round. */
interface Turn {
  /** Undefined for a proof of a block. */
  readonly requester: string | undefined;
  readonly round: number;
}

interface QueuedProof {
  readonly hash: string;
  readonly task: Parameters<typeof verifyGroth16>[0];
  readonly result: Promise<boolean>;
  readonly settle: (outcome: boolean | Promise<boolean>) => void;
  /** Undefined once the proof is being verified. */
  turn: Turn | undefined;
}
type WaitingProof = QueuedProof & { readonly turn: Turn };

const createRejection = (): RpcError =>
  new RpcError("OVERLOADED", "Too many proofs wait to be verified; try again in 5 s.", 5);

/** Creates the proof verifier. The threads of the pool verify the proofs. */
export function createProofVerifier(threads: Pick<ZkThreads, "verify" | "threads">, key: VerificationKey) {
  const results = createLruCache<boolean>(maxCachedResults);
  const lowPriority = createLruCache<true>(maxLowPriority, lowPriorityMs);
  const queue = new Map<string, QueuedProof>();
  let running = 0;
  let round = 0;

  const waitingProofs = (): WaitingProof[] =>
    [...queue.values()].filter((proof): proof is WaitingProof => proof.turn !== undefined);

  function classOf({ requester }: Turn): number {
    if (requester === undefined) {
      return 0;
    }
    return lowPriority.has(requester) ? 2 : 1;
  }

  /** Returns a negative number if the first turn comes before the second one. */
  const compare = (a: Turn, b: Turn): number => classOf(a) - classOf(b) || a.round - b.round;

  function nextTurn(requester: string | undefined): Turn {
    const own = waitingProofs().filter(({ turn }) => turn.requester === requester);
    return { requester, round: Math.max(round, ...own.map(({ turn }) => turn.round + 1)) };
  }

  /**
   * Makes room for a proof of a requester. If the queue is full, rejects the last proof instead.
   *
   * @throws RpcError OVERLOADED if the requester has too many proofs, or the new proof would be the last.
   */
  function makeRoom(turn: Turn): void {
    const waiting = waitingProofs().filter((proof) => proof.turn.requester !== undefined);
    if (waiting.filter((proof) => proof.turn.requester === turn.requester).length >= maxWaitingOfOne) {
      throw createRejection();
    }
    if (waiting.length >= maxWaiting) {
      const last = waiting.reduce((last, proof) => (compare(proof.turn, last.turn) < 0 ? last : proof));
      if (compare(last.turn, turn) <= 0) {
        throw createRejection();
      }
      queue.delete(last.hash);
      last.settle(Promise.reject(createRejection()));
    }
  }

  function startNext(): void {
    const waiting = waitingProofs();
    if (running === threads.threads || waiting.length === 0) {
      return;
    }
    const next = waiting.reduce((first, proof) => (compare(proof.turn, first.turn) < 0 ? proof : first));
    round = Math.max(round, next.turn.requester === undefined ? 0 : next.turn.round);
    (next as QueuedProof).turn = undefined;
    running++;
    const verified = threads.verify(next.task).catch(() => {
      // An invalid proof is a result; an error means that the thread ended.
      throw new RpcError("OVERLOADED", "The proof could not be verified now; try again in 5 s.", 5);
    });
    next.settle(
      verified.finally(() => {
        running--;
        queue.delete(next.hash);
        startNext();
      }),
    );
  }

  /** Adds a proof to the queue, or moves a waiting one forward if the requester gets it sooner. */
  function enqueue(hash: string, task: QueuedProof["task"], requester: string | undefined): Promise<boolean> {
    const turn = nextTurn(requester);
    const known = queue.get(hash);
    if (known !== undefined) {
      // Otherwise, others who know a proof could delay it by requesting it first.
      if (known.turn !== undefined && compare(turn, known.turn) < 0) {
        known.turn = turn;
      }
      return known.result;
    }
    if (requester !== undefined) {
      makeRoom(turn);
    }
    let settle!: QueuedProof["settle"];
    const result = new Promise<boolean>((resolve) => (settle = resolve));
    queue.set(hash, { hash, task, result, settle, turn });
    startNext();
    return result;
  }

  return {
    /**
     * Returns true if a proof is valid for these public signals.
     *
     * @param requester the requester, such as an address or a sender; undefined for a block, which never waits for
     *   requesters.
     * @throws RpcError OVERLOADED if too many proofs wait (never for a block), or if the worker thread ended.
     */
    verify: async ({ a, b, c }: Groth16Proof, signals: readonly bigint[], requester: string | undefined) => {
      const points = [a, b, c];
      if (points.some(({ length }, i) => length !== proofBytes[i])) {
        return false;
      }
      const hash = createHash("sha256");
      points.forEach((point) => hash.update(point));
      const proofHash = hash.update(signals.map(toHex).join("")).digest("hex");
      let isValid = results.get(proofHash);
      if (isValid === undefined) {
        isValid = await enqueue(proofHash, { key, proof: { a, b, c }, signals }, requester);
        results.set(proofHash, isValid);
      }
      if (!isValid && requester !== undefined) {
        lowPriority.set(requester, true);
      }
      return isValid;
    },
  };
}
