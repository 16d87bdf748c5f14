/** Types of views: each is a function of a context and the parameters of its route. */
import type { ExploredNode } from "./node.js";
import type { Proofs } from "./proof/proofs.js";

/** Dependencies of every view. */
export interface ViewContext {
  readonly node: ExploredNode;
  readonly proofs: Proofs;
  /** Aborted when another view is shown. */
  readonly signal: AbortSignal;
  /** Opens the sign-in dialog. After the sign-in, the view is loaded again. */
  readonly signIn: () => void;
  /** Loads the view again. */
  readonly reload: () => void;
}

/** Rendered view: its title and the elements below the title. */
export interface View {
  readonly title: string;
  readonly contents: readonly Node[];
}
