/**
 * Examples of requests and responses, recorded by the tests of the contract (CONTRIBUTING.md). A node without the file
 * works.
 */
import { readFileSync } from "node:fs";

export interface Example {
  /** Values of path and query parameters, by name. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Body of the response; undefined for a stream. */
  readonly response?: unknown;
  /** Body of a negative response, if that changes the status. */
  readonly refusal?: unknown;
  /** Error bodies, by status. */
  readonly failures?: Readonly<Record<string, unknown>>;
}

const file = new URL("../../../assets/examples.json", import.meta.url);

let loaded: Readonly<Record<string, Example>> | undefined;

/**
 * Returns the example of an rpc by full name, such as `gatehouse.info.v1.InfoService.GetInfo`. Loads the examples on the
 * first call.
 */
export function exampleOf(fullName: string): Example | undefined {
  try {
    loaded ??= JSON.parse(readFileSync(file, "utf8")) as Record<string, Example>;
  } catch {
    loaded = {};
  }
  return loaded[fullName];
}
