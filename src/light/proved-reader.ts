/** Reads of one node, each proved, with the proof at hand. */
import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type GetProofRequest,
  GetProofRequestSchema,
  type GetProofResponse,
  StateService,
} from "../../gen/gatehouse/state/v1/state_pb.js";
import type { ProvedBlock } from "../../client/src/proof/moment.js";
import { answerProved } from "../../client/src/proof/reads.js";
import { createProofSession, type VerifyOptions } from "../../client/src/proof/session.js";
import type { AskNode, ProofSource } from "../../client/src/proof/source.js";
import { jsonEncoder } from "../rpc/codec/json-encoder.js";
import { writeSavedProof } from "./saved-proof.js";

/** Reads what is proved. */
export interface ProvedReader {
  /**
   * The node's own JSON, made of what is proved alone. Rejects with ProofError, and with GatehouseError: of NOT_FOUND and the
   * like, which is proved as well, and of what keeps the node from answering, which proves nothing.
   */
  read<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<string>;
  /** The block after which the last read was proved; undefined while nothing was. */
  readonly block: ProvedBlock | undefined;
  /** The last proof as a file; undefined while nothing was proved. */
  readonly proofFile: () => Promise<string | undefined>;
}

/** Reads by what a node answers. Throws TypeError where what is pinned is no hash. */
export function createProvedReader(ask: AskNode, options: VerifyOptions): ProvedReader {
  let last: { readonly asked: GetProofRequest; readonly answer: GetProofResponse } | undefined;
  let block: ProvedBlock | undefined;
  const session = createProofSession(options);
  const noting: AskNode = async (method, request) => {
    const answer = await ask(method, request);
    if (method.parent.typeName === StateService.typeName) {
      const asked = create(GetProofRequestSchema, request as MessageInitShape<typeof GetProofRequestSchema>);
      last = { asked, answer: answer as unknown as GetProofResponse };
    }
    return answer;
  };
  const source = session.sourceOf(noting);
  const proving: ProofSource = {
    ...source,
    async prove(question) {
      const state = await source.prove(question);
      block = state.block;
      return state;
    },
  };
  return {
    read: async (method, request) => jsonEncoder(method.output)(await answerProved(method, request, proving)),
    get block() {
      return block;
    },
    async proofFile() {
      return block === undefined || last === undefined
        ? undefined
        : writeSavedProof({ genesis: (await source.network()).genesis, ...last });
    },
  };
}
