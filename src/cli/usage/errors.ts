/** Errors of commands: a message of one sentence with advice, an exit code, and a JSON form. */

/** Exit codes, shared by all commands. */
export const exitCodes = {
  /** Failed or rejected operation. */
  failed: 1,
  /** Invalid option, configuration or file; a retry cannot succeed. */
  usage: 2,
  /** Unreachable node, or a responder that is not a node. */
  unreachable: 3,
} as const;

/** Error codes in JSON by exit code, for errors without a reason from a node. */
const errorCodes: Readonly<Record<number, string>> = {
  [exitCodes.failed]: "FAILED",
  [exitCodes.usage]: "WRONG_USAGE",
  [exitCodes.unreachable]: "UNREACHABLE",
};

/** Error with an exit code. The message is one sentence, or empty if everything is printed already. */
export class ExitError extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
    /** Reason from the node. Default: the code that belongs to the exit code. */
    readonly errorCode = errorCodes[exitCode] ?? "FAILED",
  ) {
    super(message);
  }
}

/** Formats an error for stderr in one line: text or JSON. */
export function formatError({ message, errorCode, exitCode }: ExitError, isJson: boolean): string {
  return isJson ? JSON.stringify({ error: message, errorCode, exitCode }) : `gatehouse: ${message}`;
}
