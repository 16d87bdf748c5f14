import { markDatabaseError } from "../../base/errors/database-error-kind.js";

/**
 * What is not stored because it would be no part of the chain, or of no use: `lease`, another node writes to the
 * database; `newest`, its newest block is another one than this node knows; `files`, they are not where they were.
 */
export type FenceReason = "lease" | "newest" | "files";

/** The node may not write to its database at this moment; the message is one sentence for the operator. */
export class FencedError extends Error {
  override readonly name = "FencedError";

  constructor(
    readonly reason: FenceReason,
    message: string,
  ) {
    super(message);
    // To whoever asks it is the database that cannot be used.
    markDatabaseError(this);
  }
}
