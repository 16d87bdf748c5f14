/** One line of the table of what can be proved. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { ProofSource } from "./source.js";

/** A read whose answer is made of what was proved alone. */
export interface ProvedRead {
  readonly method: DescMethodUnary;
  /** Rejects with ProofError; with GatehouseError of the node's own reason and sentence, which is proved as well. */
  answer(request: MessageShape<DescMessage>, source: ProofSource): Promise<MessageShape<DescMessage>>;
}

/** Makes one; the types of request and answer are those of the rpc. */
export function provedRead<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  answer: (request: MessageShape<I>, source: ProofSource) => Promise<MessageInitShape<O>>,
): ProvedRead {
  return {
    method,
    answer: async (request, source) => create(method.output, await answer(request as MessageShape<I>, source)),
  };
}
