/** Reads a proof from JSON, as a node returns it over plain HTTP, such as a stored file. */
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type GetProofResponse, GetProofResponseSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { ProofError } from "./proof-error.js";

/**
 * Parses the response to `GET /state/proof`.
 *
 * @throws ProofError malformed
 */
export function readProofJson(text: string): GetProofResponse {
  try {
    const json = JSON.parse(text) as JsonValue;
    if (typeof json !== "object" || json === null || !("header" in json)) {
      throw new TypeError("It has no header.");
    }
    return fromJson(GetProofResponseSchema, json, { ignoreUnknownFields: true });
  } catch (cause) {
    throw new ProofError("malformed", "This is not a proof in the JSON form of a node's response.", { cause });
  }
}
