/** How commands fail: one sentence, what to do in it, an exit code, and the same as JSON for machines. */

/** Exit codes, which all commands share. */
export const exitCodes = {
  /** It was tried, and failed or was refused. */
  failed: 1,
  /** An option, the configuration, or a file that was named is wrong: trying again changes nothing. */
  usage: 2,
  /** The node does not answer, or not as a node does. */
  unreachable: 3,
} as const;

/** What machines are told where no node has given a reason of its own. */
const codesOfExits: Readonly<Record<number, string>> = {
  [exitCodes.failed]: "FAILED",
  [exitCodes.usage]: "WRONG_USAGE",
  [exitCodes.unreachable]: "UNREACHABLE",
};

/** A failure with an exit code of its own; the message is one sentence, or nothing when all is printed already. */
export class ExitError extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
    /** The reason that the node told. */
    readonly errorCode = codesOfExits[exitCode] ?? "FAILED",
  ) {
    super(message);
  }
}

/** The failure on stderr, in one line: a sentence, or JSON. */
export function describeFailure({ message, errorCode, exitCode }: ExitError, isJson: boolean): string {
  return isJson ? JSON.stringify({ error: message, errorCode, exitCode }) : `gatehouse: ${message}`;
}
