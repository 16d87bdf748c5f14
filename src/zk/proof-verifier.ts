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
import { createFairScheduler } from "./fair-scheduler.js";
import type { ZkThreads } from "./worker-pool.js";

type Task = Parameters<typeof verifyGroth16>[0];

export interface ProofVerifier {
  /**
   * Returns true if a proof is valid for these public signals.
   *
   * @param requester the requester, such as an address or a sender; undefined for a block, which never waits for
   * requesters.
   * @throws RpcError OVERLOADED if too many proofs wait (never for a block), or if the worker thread ended.
   */
  readonly verify: (proof: Groth16Proof, signals: readonly bigint[], requester: string | undefined) => Promise<boolean>;
}

/** Limit on the cached results, so that a proof verified for a transaction is not verified again for its block. */
const maxCachedResults = 10_000;
/** Time in milliseconds for which the sender of an invalid proof is served last. */
const lowPriorityMs = 60_000;
const maxLowPriority = 10_000;

/** Creates the proof verifier. The threads of the pool verify the proofs. */
export function createProofVerifier(
  workerPool: Pick<ZkThreads, "verify" | "threads">,
  key: VerificationKey,
): ProofVerifier {
  const results = createLruCache<boolean>(maxCachedResults);
  const lowPriority = createLruCache<true>(maxLowPriority, lowPriorityMs);
  const scheduler = createFairScheduler<Task, boolean>({
    run: (task) =>
      workerPool.verify(task).catch(() => {
        // An invalid proof is a result; an error means that the thread ended.
        throw new RpcError("OVERLOADED", "The proof could not be verified now; try again in 5 s.", 5);
      }),
    maxRunning: workerPool.threads,
    isLowPriority: (requester) => lowPriority.has(requester),
    createRejection: () => new RpcError("OVERLOADED", "Too many proofs wait to be verified; try again in 5 s.", 5),
  });

  return {
    async verify({ a, b, c }, signals, requester) {
      const points = [a, b, c];
      if (points.some(({ length }, i) => length !== proofBytes[i])) {
        return false;
      }
      const hash = createHash("sha256");
      points.forEach((point) => hash.update(point));
      const proofHash = hash.update(signals.map(toHex).join("")).digest("hex");
      let isValid = results.get(proofHash);
      if (isValid === undefined) {
        isValid = await scheduler.schedule(proofHash, { key, proof: { a, b, c }, signals }, requester);
        results.set(proofHash, isValid);
      }
      if (!isValid && requester !== undefined) {
        lowPriority.set(requester, true);
      }
      return isValid;
    },
  };
}
