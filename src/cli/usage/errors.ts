/** Errors of commands: a message of one sentence with advice, an exit code, and a JSON form. */

export const exitCodes = {
  /** Failed or rejected operation. */
  failed: 1,
  /** Invalid option, configuration or file, thrown as InputError; a retry cannot succeed. */
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
    readonly exitCode: number = exitCodes.failed,
    /** Reason from the node. Default: the code that belongs to the exit code. */
    readonly errorCode = errorCodes[exitCode] ?? "FAILED",
  ) {
    super(message);
  }
}

export function unreachable(node: string, reason: string): ExitError {
  return new ExitError(`No node responds at ${node}: ${reason}.`, exitCodes.unreachable);
}
