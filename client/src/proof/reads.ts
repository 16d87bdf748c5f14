/**
 * Table of all verified reads: the proof that each needs, and the response that is built from it. A read that is not in
 * the table is rejected.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  equals,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { GatehouseError } from "../gatehouse-error.js";
import { chainReads } from "./chain-reads.js";
import { ProofError } from "./proof-error.js";
import type { ProvedRead } from "./proved-read.js";
import { absenceReasons, type ProofSource, provenError, unprovable } from "./source.js";
import { storageReads } from "./storage-reads.js";
import { zkReads } from "./zk-reads.js";

/** Verified reads of all services. */
export const provedReads: readonly ProvedRead[] = [...storageReads, ...zkReads, ...chainReads];

// Keyed by name, because an application may have generated code of its own.
const byName = new Map(provedReads.map((read) => [nameOf(read.method), read]));

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** Returns true if responses of this rpc can be proven. */
export function isProvable(method: DescMethod): boolean {
  return byName.has(nameOf(method));
}

/**
 * Returns the response of the node, built only from proven values.
 *
 * @throws ProofError unprovable if the rpc is not in the table, and as checkProof does; GatehouseError with the reason
 * and message of the node if the requested item does not exist, which is proven as well.
 */
export async function answerProved<I extends DescMessage, O extends DescMessage>(
  method: DescMethod & { readonly input: I; readonly output: O },
  request: MessageInitShape<I>,
  source: ProofSource,
): Promise<MessageShape<O>> {
  const read = byName.get(nameOf(method));
  if (read === undefined) {
    throw unprovable(`A response of ${method.parent.typeName}.${method.name}`);
  }
  const message = create(method.input, request);
  requireEncodable(method.input, message);
  try {
    return (await read.read(message, source)) as MessageShape<O>;
  } catch (error) {
    throw isSubmission(method) ? error : withoutClaim(error);
  }
}

/** The one entry of the table that is no read: a node may reject the transaction for reasons that no proof shows. */
function isSubmission({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/**
 * Rejects values that cannot be sent, or that would arrive as others: numbers outside their range, and halves of
 * surrogate pairs. They are mistakes of the caller, which a comparison with the response would blame on the node.
 *
 * @throws GatehouseError INVALID_REQUEST
 */
function requireEncodable(desc: DescMessage, message: MessageShape<DescMessage>): void {
  let cause: unknown;
  try {
    if (equals(desc, message, fromBinary(desc, toBinary(desc, message)))) {
      return;
    }
  } catch (error) {
    cause = error;
  }
  const detail = cause instanceof Error ? `: ${cause.message}` : ": a text has half of a surrogate pair";
  throw provenError(["INVALID_REQUEST", `The request cannot be encoded as ${desc.typeName}${detail}.`]);
}

/**
 * Converts an error of the node that a verified read establishes itself: absence by a proof, an invalid request by the
 * contract.
 */
function withoutClaim(error: unknown): unknown {
  if (!(error instanceof GatehouseError) || !error.fromNode) {
    return error;
  }
  if (absenceReasons.has(error.reason) || error.reason === "INVALID_REQUEST") {
    const message = `A node responded without a proof: ${error.message}`;
    return new ProofError("unprovable", message, { cause: error, fromNode: true });
  }
  return error;
}
