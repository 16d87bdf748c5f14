/** Input and output of views. */
import type { ExploredNode } from "./node.js";
import type { Proofs } from "./proofs.js";

/** Dependencies of a view. */
export interface Looking {
  readonly node: ExploredNode;
  readonly proofs: Proofs;
  /** Aborted when another view is shown. */
  readonly signal: AbortSignal;
  /** Opens the dialog for a key; the view is then loaded again. */
  readonly signIn: () => void;
}

/** View: a title and its elements. */
export interface View {
  readonly title: string;
  readonly contents: readonly Node[];
}
