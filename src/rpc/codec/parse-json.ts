import { RpcError } from "../errors.js";
import { isNestedDeeper } from "../../base/text/json-depth.js";

/** Limit on the nesting depth of a JSON body. */
const maxDepth = 128;

/**
 * Parses the JSON text of a request. Text that is nested too deeply is rejected after a scan of its brackets. Parsing a
 * megabyte of brackets would block the event loop for 0.1 s.
 *
 * @throws RpcError INVALID_REQUEST
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
