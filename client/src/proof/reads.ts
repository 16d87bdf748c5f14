/**
 * The one table of what can be proved: for each read, what has to be proved and how the node's own answer is made of that.
 * A read that is not in it is not answered.
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

/** All of them. */
export const provedReads: readonly ProvedRead[] = [...storageReads, ...zkReads, ...chainReads];

// By name: an application may have stubs of its own.
const byName = new Map(provedReads.map((read) => [nameOf(read.method), read]));

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** Whether answers to this rpc can be proved. */
export function isProvable(method: DescMethod): boolean {
  return byName.has(nameOf(method));
}

/**
 * The node's answer, made of what was proved alone.
 *
 * @throws ProofError unprovable for an rpc that is not in the table, and as checkProof does; GatehouseError with the node's
 * own reason and sentence where what is asked for is not there, which is proved as well.
 */
export async function answerProved<I extends DescMessage, O extends DescMessage>(
  method: DescMethod & { readonly input: I; readonly output: O },
  request: MessageInitShape<I>,
  source: ProofSource,
): Promise<MessageShape<O>> {
  const read = byName.get(nameOf(method));
  if (read === undefined) {
    throw unprovable(`An answer of ${method.parent.typeName}.${method.name}`);
  }
  return (await read.answer(create(method.input, request), source)) as MessageShape<O>;
}
