/**
 * Table of all verified reads: the proof that each needs, and the response that is built from it. A read that is not in
 * the table is rejected.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { chainReads } from "./chain-reads.js";
import type { ProvedRead } from "./proved-read.js";
import { type ProofSource, unprovable } from "./source.js";
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
  return (await read.read(create(method.input, request), source)) as MessageShape<O>;
}
