/** Signs what is to be done and hands it in, one after the other. */
import type { Client } from "@connectrpc/connect";
import type { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ofTransaction, toGatehouseError } from "./errors.js";
import type { ClientLifecycle } from "./lifetime.js";
import type { KnownSigner } from "./signer.js";
import { type Operation, type SignedTransaction, signTransaction } from "./transaction.js";

/** How one call is made. */
export interface CallOptions {
  /** Ends it. */
  readonly signal?: AbortSignal | undefined;
  /** How long it may take, with all retries. */
  readonly timeoutMs?: number | undefined;
}

/** How a transaction is made and handed in. */
export interface SubmitOptions extends CallOptions {
  /** A nonce of one's own, in place of the next one of the client. */
  readonly nonce?: bigint | undefined;
  /** How long it may wait for its block, at most an hour; ten minutes when left out. */
  readonly expiresInMs?: number | undefined;
}

/** A transaction that a node has taken. */
export type Submitted = Omit<SignedTransaction, "transaction">;

/** What it is made of. */
export interface SubmitDeps {
  readonly chain: Client<typeof ChainService>;
  readonly lifetime: ClientLifecycle;
  readonly signer: KnownSigner;
  readonly network: () => Promise<string>;
}

/** Hands a signed transaction in, and names it in the error when that fails. */
export async function handIn(
  chain: Client<typeof ChainService>,
  { transaction, ...submitted }: SignedTransaction,
  { signal, timeoutMs }: CallOptions,
): Promise<Submitted> {
  try {
    await chain.submitTransaction({ transaction }, { signal, timeoutMs });
    return submitted;
  } catch (thrown) {
    signal?.throwIfAborted();
    throw ofTransaction(toGatehouseError(thrown), submitted.hash);
  }
}

/**
 * Makes the function that submits. A sender's nonces grow, and one that arrives after a larger one is in a block is
 * refused: so each transaction is handed in when the one before has its answer, however many are asked for at once.
 */
export function createSubmit({ chain, lifetime, signer, network }: SubmitDeps) {
  let before: Promise<unknown> = Promise.resolve();
  let lastNonce: bigint | undefined;

  /** The time in milliseconds, as other programs with the same key do; above all that this one or the chain has seen. */
  async function nextNonce(options: CallOptions): Promise<bigint> {
    lastNonce ??= (await chain.getSender({ address: signer.publicKey }, options)).nonce;
    const now = BigInt(Date.now());
    lastNonce = now > lastNonce ? now : lastNonce + 1n;
    return lastNonce;
  }

  return async (operation: Operation, options: SubmitOptions = {}): Promise<Submitted> => {
    const { signal, timeoutMs, expiresInMs } = options;
    const turn = before.then(() =>
      lifetime.run(signal, async (own) => {
        const call = { signal: own, timeoutMs };
        const nonce = options.nonce ?? (await nextNonce(call));
        const expiresMs = expiresInMs === undefined ? undefined : Date.now() + expiresInMs;
        const signed = await signTransaction(signer, { operation, network: await network(), nonce, expiresMs });
        own.throwIfAborted();
        return await handIn(chain, signed, call);
      }),
    );
    before = turn.catch(() => undefined);
    return await turn;
  };
}
