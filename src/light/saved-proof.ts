/** Proof in a file: the node's response, the request, and the genesis, so that verification requires no node. */
import {
  type GetProofRequest,
  GetProofRequestSchema,
  type GetProofResponse,
  GetProofResponseSchema,
} from "../../gen/gatehouse/state/v1/state_pb.js";
import { questionOf } from "../../client/src/proof/check.js";
import { parseProofText, readMessage, readProof } from "../../client/src/proof/json.js";
import { ProofError } from "../../client/src/proof/proof-error.js";
import { isJsonObject, type Json } from "../base/text/parse-json.js";
import { jsonEncoder } from "../rpc/codec/json-encoder.js";

/** Content of the file. `asked` is the request and `answer` the response, as the members of the file are named. */
export interface SavedProof {
  /** Exact text of the genesis; undefined in a file with only the node's response. */
  readonly genesis: string | undefined;
  readonly asked: GetProofRequest;
  readonly answer: GetProofResponse;
}

const encodeRequest = jsonEncoder(GetProofRequestSchema);
const encodeResponse = jsonEncoder(GetProofResponseSchema);

/** Returns the text of the file. Request and response have the JSON form of plain HTTP. */
export function writeSavedProof({ genesis, asked, answer }: SavedProof): string {
  const members = [`"genesis":${JSON.stringify(genesis)}`, `"asked":${encodeRequest(asked)}`];
  return `{${members.join(",")},"answer":${encodeResponse(answer)}}\n`;
}

/**
 * Reads a saved proof, or an unchanged response of `GET /state/proof`. For the latter, the request is derived from the
 * response.
 *
 * @throws ProofError malformed
 */
export function readSavedProof(text: string): SavedProof {
  const json = parseProofText(text);
  const { genesis, asked, answer } = isJsonObject(json) ? json : {};
  if (answer === undefined) {
    const response = readProof(json);
    return { genesis: undefined, asked: questionOf(response), answer: response };
  }
  if (typeof genesis !== "string") {
    throw new ProofError("malformed", "The file has no genesis text.");
  }
  return { genesis, asked: readRequest(asked), answer: readProof(answer) };
}

function readRequest(asked: Json | undefined): GetProofRequest {
  try {
    return readMessage(GetProofRequestSchema, asked ?? null);
  } catch (cause) {
    throw new ProofError("malformed", "The file does not state what was requested (asked).", { cause });
  }
}
