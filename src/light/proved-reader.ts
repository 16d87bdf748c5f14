/** Reader of one node that proves each response, and retains the latest proof. */
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

export type ProvedReader = ReturnType<typeof createProvedReader>;

/** Creates a reader of the responses of a node. Throws TypeError if a pinned hash is malformed. */
export function createProvedReader(ask: AskNode, options: VerifyOptions) {
  /** Request and response of the last verified proof, and the block of its state. */
  let last: { readonly asked: GetProofRequest; readonly answer: GetProofResponse } | undefined;
  let block: ProvedBlock | undefined;
  const session = createProofSession(options);
  const source = session.sourceOf(ask);
  const recordingSource: ProofSource = {
    ...source,
    async prove(proofRequest) {
      let unverified: typeof last;
      const recordingAsk: AskNode = async (method, request) => {
        const response = await ask(method, request);
        if (method.parent.typeName === StateService.typeName) {
          const asked = create(GetProofRequestSchema, request as MessageInitShape<typeof GetProofRequestSchema>);
          unverified = { asked, answer: response as unknown as GetProofResponse };
        }
        return response;
      };
      const state = await session.sourceOf(recordingAsk).prove(proofRequest);
      last = unverified;
      block = state.block;
      return state;
    },
  };
  return {
    /**
     * Returns the node's own JSON, built from proved data alone.
     *
     * @throws ProofError; GatehouseError for a proved absence such as NOT_FOUND, or for an error that prevents a
     *   response and proves nothing.
     */
    async read<I extends DescMessage, O extends DescMessage>(
      method: DescMethodUnary<I, O>,
      request: MessageInitShape<I>,
    ): Promise<string> {
      return jsonEncoder(method.output)(await answerProved(method, request, recordingSource));
    },
    /** Block of the state that the last read was proved against; undefined before the first proof. */
    get block() {
      return block;
    },
    /** Returns the last proof as a file; undefined before the first proof. */
    async proofFile(): Promise<string | undefined> {
      return last === undefined ? undefined : writeSavedProof({ genesis: (await source.network()).genesis, ...last });
    },
  };
}
