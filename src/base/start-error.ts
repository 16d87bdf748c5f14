/** The node cannot start; the message is one sentence that says why and what to do. */
export class StartError extends Error {
  override readonly name = "StartError";
}
