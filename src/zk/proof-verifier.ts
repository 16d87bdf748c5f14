/**
 * Verifies proofs, each once, whoever sends it and in however many transactions. Blocks come first; those who ask for
 * transactions to be let in take turns, and whoever sent a wrong proof lately comes after the others: with many wrong
 * proofs one delays oneself.
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

/** Whether proofs hold. */
export interface ProofVerifier {
  /**
   * Whether a proof holds for these public signals.
   *
   * @param askedBy who takes a turn: an address, a sender; undefined for a block, which waits for nobody.
   * @throws Failure OVERLOADED, never for a block.
   */
  readonly verify: (proof: Groth16Proof, signals: readonly bigint[], askedBy: string | undefined) => Promise<boolean>;
}

/** Verdicts that are kept, so that what was verified for a transaction is not verified again for its block. */
const keptVerdicts = 10_000;
/** Who sent a wrong proof is remembered for so long. */
const suspectMs = 60_000;
const maxSuspects = 10_000;

/** Builds it; proofs are verified in the threads of the pool. */
export function createProofVerifier(
  workerPool: Pick<ZkThreads, "verify" | "threads">,
  key: VerificationKey,
): ProofVerifier {
  const verdicts = createLruCache<boolean>(keptVerdicts);
  const suspects = createLruCache<true>(maxSuspects, suspectMs);
  const turns = createFairScheduler<Task, boolean>({
    run: (task) =>
      workerPool.verify(task).catch(() => {
        // A proof that is not good is a verdict; here a thread ended.
        throw new RpcError("OVERLOADED", "The proof could not be verified now; try again in 5 s.", 5);
      }),
    atOnce: workerPool.threads,
    isLast: (askedBy) => suspects.has(askedBy),
    refuse: () => new RpcError("OVERLOADED", "Too many proofs wait to be verified; try again in 5 s.", 5),
  });

  return {
    async verify({ a, b, c }, signals, askedBy) {
      const parts = [a, b, c];
      if (parts.some(({ length }, i) => length !== proofBytes[i])) {
        return false;
      }
      const hash = createHash("sha256");
      parts.forEach((part) => hash.update(part));
      const name = hash.update(signals.map(toHex).join("")).digest("hex");
      let verdict = verdicts.get(name);
      if (verdict === undefined) {
        verdict = await turns.take(name, { key, proof: { a, b, c }, signals }, askedBy);
        verdicts.set(name, verdict);
      }
      if (!verdict && askedBy !== undefined) {
        suspects.set(askedBy, true);
      }
      return verdict;
    },
  };
}
