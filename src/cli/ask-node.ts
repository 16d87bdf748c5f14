/** Asking a running node over HTTP, for the commands that do. */
import type { Command } from "commander";
import { ExitError } from "./output.js";

const defaultNode = "http://127.0.0.1:53550";
const timeoutMs = 5_000;

/** Adds `--node` and `--json` to a command. */
export function addNodeFlags(command: Command): Command {
  return command
    .addOption(command.createOption("--node <URL>", "The node to ask.").env("GATEHOUSE_NODE").default(defaultNode))
    .option("--json", "Print the node's own JSON.");
}

/**
 * Fetches a path of the node.
 *
 * @throws ExitError with code 3 when the node cannot be reached or answers something else.
 */
export async function askNode(node: string, path: string): Promise<{ readonly status: number; readonly text: string }> {
  if (!URL.canParse(path, node)) {
    throw new ExitError(`--node must be a URL such as ${defaultNode}, not "${node}".`, 2);
  }
  try {
    const response = await fetch(new URL(path, node), { signal: AbortSignal.timeout(timeoutMs) });
    const text = await response.text();
    JSON.parse(text);
    return { status: response.status, text };
  } catch (error) {
    throw new ExitError(`No node answers at ${node}: ${whyNot(error)}.`, 3);
  }
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
