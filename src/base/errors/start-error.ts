/** The node cannot start; the message is one sentence that says why and what to do. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** The start was ended by its signal, and all that had begun with it. */
export class StartAborted extends Error {
  override readonly name = "StartAborted";
}

/** What was given, such as an option or a file, cannot be used: trying again changes nothing. The message is one sentence. */
export class InputError extends Error {
  override readonly name: string = "InputError";
}
