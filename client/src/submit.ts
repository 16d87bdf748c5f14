/** Signs operations and submits them one after the other. */
import type { Client } from "@connectrpc/connect";
import type { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { withTransactionHash, toGatehouseError } from "./errors.js";
import type { ClientLifecycle } from "./lifetime.js";
import type { ValidSigner } from "./signer.js";
import { type Operation, type SignedTransaction, signTransaction } from "./transaction.js";

export interface CallOptions {
  /** Aborts the call. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit in milliseconds, including all retries; 0 for no limit. */
  readonly timeoutMs?: number | undefined;
}

/** Options to create and submit a transaction. */
export interface SubmitOptions extends CallOptions {
  /** Nonce to use instead of the next one of the client. */
  readonly nonce?: bigint | undefined;
  /** Time in milliseconds until the transaction expires, at most one hour. Default: ten minutes. */
  readonly expiresInMs?: number | undefined;
}

/** Transaction that a node has accepted. */
export type Submitted = Omit<SignedTransaction, "transaction">;

export interface SubmitDeps {
  readonly chain: Client<typeof ChainService>;
  readonly lifetime: ClientLifecycle;
  readonly signer: ValidSigner;
  readonly network: () => Promise<string>;
}

/** Submits a signed transaction. An error contains the hash of the transaction. */
export async function submitSigned(
  chain: Client<typeof ChainService>,
  { transaction, ...submitted }: SignedTransaction,
  { signal, timeoutMs }: CallOptions,
): Promise<Submitted> {
  try {
    await chain.submitTransaction({ transaction }, { signal, timeoutMs });
    return submitted;
  } catch (thrown) {
    signal?.throwIfAborted();
    throw withTransactionHash(toGatehouseError(thrown), submitted.hash);
  }
}

/**
 * Creates the function that submits. Nonces of a sender must grow, and a node rejects a nonce below one in a block. So
 * each transaction is submitted after the response to the previous one, even if calls are concurrent.
 */
export function createSubmit({ chain, lifetime, signer, network }: SubmitDeps) {
  let previous: Promise<unknown> = Promise.resolve();
  /** Nonce on the chain when this client submitted first. */
  let chainNonce: bigint | undefined;
  let lastNonce = 0n;

  /**
   * Returns the time in milliseconds, as other programs with the same key do, or the last nonce plus 1 if that is
   * larger.
   */
  async function nextNonce(options: CallOptions): Promise<bigint> {
    chainNonce ??= (await chain.getSender({ address: signer.publicKey }, options)).nonce;
    const minNonce = (chainNonce > lastNonce ? chainNonce : lastNonce) + 1n;
    const now = BigInt(Date.now());
    return now > minNonce ? now : minNonce;
  }

  return async (operation: Operation, options: SubmitOptions = {}): Promise<Submitted> => {
    const { signal, timeoutMs, expiresInMs } = options;
    const result = previous.then(() =>
      lifetime.run(signal, async (callSignal) => {
        const call = { signal: callSignal, timeoutMs };
        const nonce = options.nonce ?? (await nextNonce(call));
        const expiresMs = expiresInMs === undefined ? undefined : Date.now() + expiresInMs;
        const signed = await signTransaction(signer, { operation, network: await network(), nonce, expiresMs });
        callSignal.throwIfAborted();
        lastNonce = nonce > lastNonce ? nonce : lastNonce;
        return await submitSigned(chain, signed, call);
      }),
    );
    previous = result.catch(() => undefined);
    return await result;
  };
}
