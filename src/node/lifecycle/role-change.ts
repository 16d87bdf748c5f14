/** Change of a node's role while its process runs: a standby replaces the writer, and a replaced writer stands by. */
import type { HeldLease } from "../../chain/writer/writer-lease-store.js";

/** Events that led to the start of a node, if it continues another node of this process. */
export interface Succession {
  /** Writer lease that was acquired for this node in advance; without it a writer acquires one itself. */
  readonly acquiredLease?: HeldLease;
  /** Time, in milliseconds since the epoch, at which this node was replaced as the writer; undefined if it was not. */
  readonly replacedAtMs?: number;
}

/** Role that a node takes instead of its own. */
export type RoleChange = Succession & { readonly role: "writer" | "standby" };
