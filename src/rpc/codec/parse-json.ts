import { RpcError } from "../errors.js";
import { isNestedDeeper } from "../../base/text/json-depth.js";

/** Deepest nesting of a JSON body. */
const maxDepth = 128;

/**
 * Parses the JSON text of a request. Text that is nested too deep is refused after a look at its brackets: parsing a
 * megabyte of them would hold up everybody for a tenth of a second.
 *
 * @throws Failure INVALID_REQUEST
 */
export function parseJson(text: string): unknown {
  if (isNestedDeeper(text, maxDepth)) {
    throw new RpcError("INVALID_REQUEST", `The JSON of the request body is nested deeper than ${maxDepth} levels.`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new RpcError("INVALID_REQUEST", "The request body is not JSON.");
  }
}
