/** Asking a running node over HTTP, for the commands that do. */
import type { Command } from "commander";
import { optionsByKey } from "../config/options.js";
import { ExitError } from "./output.js";

const defaultNode = `http://127.0.0.1:${optionsByKey.rpcPort.fallback}`;
const timeoutMs = 5_000;

/** Adds `--node` and `--json` to a command. */
export function addNodeFlags(command: Command): Command {
  return command
    .addOption(command.createOption("--node <URL>", "The node to ask.").env("GATEHOUSE_NODE").default(defaultNode))
    .option("--json", "Print the node's own JSON.");
}

/** A request to a node; GET without a body when left out. */
export interface NodeRequest {
  /** Sent as JSON, with POST. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a node answered. */
export interface NodeAnswer {
  readonly status: number;
  /** JSON. */
  readonly text: string;
}

/**
 * Asks the node for a path.
 *
 * @throws ExitError with code 3 when the node cannot be reached or answers something else.
 */
export async function askNode(node: string, path: string, { body, headers }: NodeRequest = {}): Promise<NodeAnswer> {
  if (!URL.canParse(path, node)) {
    throw new ExitError(`--node must be a URL such as ${defaultNode}, not "${node}".`, 2);
  }
  try {
    const response = await fetch(new URL(path, node), {
      signal: AbortSignal.timeout(timeoutMs),
      headers: { ...headers, ...(body !== undefined && { "Content-Type": "application/json" }) },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
    const text = await response.text();
    JSON.parse(text);
    return { status: response.status, text };
  } catch (error) {
    throw new ExitError(`No node answers at ${node}: ${whyNot(error)}.`, 3);
  }
}

/**
 * Asks the node for what is there.
 *
 * @throws ExitError with code 1 and the node's own sentence when it refuses.
 */
export async function askSuccessfully(node: string, path: string, request?: NodeRequest): Promise<string> {
  const { status, text } = await askNode(node, path, request);
  if (status >= 400) {
    const { error, errorCode } = JSON.parse(text) as { error?: string; errorCode?: string };
    throw new ExitError(`The node refuses: ${error ?? `status ${status}`} (${errorCode ?? status})`, 1);
  }
  return text;
}

function whyNot(error: unknown): string {
  if (error instanceof SyntaxError) {
    return "what answers there is not a node";
  }
  if (error instanceof Error && error.name === "TimeoutError") {
    return `no answer within ${timeoutMs / 1000} s`;
  }
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) {
    return String(cause);
  }
  return "code" in cause && cause.code === "ECONNREFUSED" ? "the connection is refused" : cause.message;
}
