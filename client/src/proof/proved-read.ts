/** Entry of the table of verified reads. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { ProofSource } from "./source.js";

/** Read with a response that is built only from proven values. */
export interface ProvedRead {
  readonly method: DescMethodUnary;
  /**
   * Returns the verified response. Rejects with ProofError, or with GatehouseError for a proven error: the reason and
   * message that the node itself returns.
   */
  read(request: MessageShape<DescMessage>, source: ProofSource): Promise<MessageShape<DescMessage>>;
}

/** Creates an entry; the types of request and response are those of the rpc. */
export function provedRead<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  read: (request: MessageShape<I>, source: ProofSource) => Promise<MessageInitShape<O>>,
): ProvedRead {
  return {
    method,
    read: async (request, source) => create(method.output, await read(request as MessageShape<I>, source)),
  };
}
