/** Entry point of the explorer. Shows the view of the route, and loads it again after a sign-in or sign-out. */
import { byId, h } from "./dom.js";
import { createNode, NodeError } from "./node.js";
import { messageOf, note, showNotice } from "./parts.js";
import { createProofs } from "./proof/proofs.js";
import { readRoute, type Route } from "./routes.js";
import { markCurrentLink, startShell } from "./shell/shell.js";
import { setUpSignIn } from "./shell/sign-in.js";
import type { View, ViewContext } from "./view.js";
import { viewBlock } from "./views/block.js";
import { viewBlocks } from "./views/blocks.js";
import { viewDecode } from "./views/decode.js";
import { viewForks } from "./views/forks.js";
import { viewKeys } from "./views/keys.js";
import { viewLog } from "./views/log.js";
import { viewNullifier } from "./views/nullifier.js";
import { viewOverview } from "./views/overview.js";
import { viewOwner } from "./views/owner.js";
import { viewPeers } from "./views/peers.js";
import { viewProgram } from "./views/program.js";
import { viewSearch } from "./views/search.js";
import { viewSnapshots } from "./views/snapshots.js";
import { viewTransaction } from "./views/transaction.js";
import { viewPrograms, viewTransactions } from "./views/transactions.js";
import { viewTree } from "./views/tree.js";
import { viewChange, viewNewProgram } from "./views/write.js";

const node = createNode(location);
const proofs = createProofs(node);
const main = byId("main");
const search = byId("q") as HTMLInputElement;
let currentView = new AbortController();

/** Functions that render each view. Views of one item get its name. */
const views: Readonly<Record<Route["kind"], (context: ViewContext, name: string) => Promise<View>>> = {
  overview: viewOverview,
  blocks: viewBlocks,
  block: viewBlock,
  transactions: viewTransactions,
  transaction: viewTransaction,
  programs: viewPrograms,
  program: viewProgram,
  owner: viewOwner,
  tree: viewTree,
  nullifier: viewNullifier,
  peers: viewPeers,
  snapshots: viewSnapshots,
  forks: viewForks,
  log: viewLog,
  keys: viewKeys,
  new: viewNewProgram,
  change: viewChange,
  decode: viewDecode,
  search: viewSearch,
};

/**
 * Shows the view of the current route.
 *
 * @param isNavigation true after a navigation: the title is focused, so that screen readers announce it.
 */
async function show(isNavigation: boolean): Promise<void> {
  currentView.abort();
  const { signal } = (currentView = new AbortController());
  const route = readRoute(location.hash);
  search.value = route?.kind === "search" ? route.name : "";
  markCurrentLink();
  showNotice(undefined);
  main.setAttribute("aria-busy", "true");
  const view = await (
    route === undefined ? noView() : views[route.kind]({ node, proofs, signal, signIn, reload }, route.name ?? "")
  ).catch((error: unknown) => viewError(error, signal));
  if (signal.aborted) {
    return;
  }
  const heading = h("h1", { tabindex: -1 }, view.title);
  main.replaceChildren(heading, ...view.contents);
  main.removeAttribute("aria-busy");
  document.title = `${view.title} · Gatehouse explorer`;
  if (isNavigation) {
    heading.focus({ preventScroll: true });
  }
  scrollTo(0, scrollOf(history.state));
}

const reload = (): void => void show(false);

const noView = (): Promise<View> =>
  Promise.resolve({ title: "Nothing here", contents: [note("The explorer has no view at this address.")] });

/** Time in milliseconds after which a view that the node did not send is loaded again. */
const retryMs = 3_000;
/** Titles by the reason of an error that a later request does not change. */
const titles: Readonly<Record<string, string>> = { NOT_FOUND: "Not found", INVALID_REQUEST: "Nothing here" };

/** Shows why there is no view. If this may change, loads the view again. */
function viewError(error: unknown, signal: AbortSignal): View {
  const message = h("p", {}, messageOf(error));
  const title = titles[error instanceof NodeError ? error.reason : ""];
  if (title !== undefined || signal.aborted) {
    return { title: title ?? "", contents: [message] };
  }
  const timer = setTimeout(() => void show(false), retryMs);
  signal.addEventListener("abort", () => clearTimeout(timer));
  return { title: "Not available", contents: [message, note("This page tries again.")] };
}

/** Returns how far a page was scrolled when the reader left it. */
const scrollOf = (state: unknown): number => (typeof state === "number" ? state : 0);

const signIn = setUpSignIn(node.session);
node.session.onChange(() => void show(true));
// The fragment of the URL is the route, so that the skip link cannot use its fragment and moves the focus by script.
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
// Browsers restore the position before the view is loaded.
history.scrollRestoration = "manual";
addEventListener("scrollend", () => main.ariaBusy === null && history.replaceState(scrollY, ""));
addEventListener("hashchange", () => void show(true));
startShell(node);
void show(false);
