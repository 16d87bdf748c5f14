/** Error for a node that cannot start. The message is one sentence with the reason and the remedy. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** Error for a start that was aborted by its signal. Everything that had started is stopped again. */
export class StartAborted extends Error {
  override readonly name = "StartAborted";
}

/** Error for invalid input, such as an option or a file. A retry cannot succeed. The message is one sentence. */
export class InputError extends Error {
  override readonly name: string = "InputError";
}
