/** The node cannot start; the message is one sentence that says why and what to do. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** The start was ended by its signal, and all that had begun with it. */
export class StartAborted extends Error {
  override readonly name = "StartAborted";
}
