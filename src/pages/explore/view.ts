/** What a view gets and gives. */
import type { ExploredNode } from "./node.js";
import type { Proofs } from "./proofs.js";

/** What a view is made with. */
export interface Looking {
  readonly node: ExploredNode;
  readonly proofs: Proofs;
  /** Aborted when something else is shown. */
  readonly signal: AbortSignal;
  /** Opens the dialog in which a key is given; what is shown is then asked for again. */
  readonly signIn: () => void;
}

/** A view. */
export interface View {
  readonly title: string;
  readonly contents: readonly Node[];
}
