/**
 * Examples of requests and answers for people: what the cases of the contract's tests send and get, which record them
 * (CONTRIBUTING.md). A node without them serves all the same.
 */
import { readFileSync } from "node:fs";

/** What was asked of an rpc over plain HTTP, and answered. */
export interface Example {
  /** Values of parameters in path and query, by name. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** The body of the answer; a stream has none. */
  readonly response?: unknown;
  /** The body of an answer that says no, where that changes the status. */
  readonly refusal?: unknown;
  /** Bodies of failures, by status. */
  readonly failures?: Readonly<Record<string, unknown>>;
}

/** The example of the rpc with this full name, such as `gatehouse.info.v1.InfoService.GetInfo`. */
export type ExampleOf = (fullName: string) => Example | undefined;

const file = new URL("../../../assets/examples.json", import.meta.url);

let loaded: Readonly<Record<string, Example>> | undefined;

/** Read when the first one is asked for. */
export const exampleOf: ExampleOf = (fullName) => (loaded ??= loadExamples())[fullName];

function loadExamples(): Readonly<Record<string, Example>> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Record<string, Example>;
  } catch {
    return {};
  }
}
