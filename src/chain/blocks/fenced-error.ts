import { markDatabaseError } from "../../base/errors/database-error-kind.js";

/**
 * Reason why the node must not write. `lease`: another node holds the writer lease. `latest`: the latest block in the
 * database differs from the one that this node knows. `files`: database files were moved or replaced.
 */
export type FenceReason = "lease" | "latest" | "files";

/**
 * Error of a write that the fence rejects. Its message is for the operator; clients get the error of an unavailable
 * database.
 */
export class FencedError extends Error {
  override readonly name = "FencedError";

  constructor(
    readonly reason: FenceReason,
    message: string,
  ) {
    super(message);
    markDatabaseError(this);
  }
}
