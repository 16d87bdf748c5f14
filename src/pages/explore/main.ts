/** Entry point of the explorer. Shows the view of the route, and loads it again after a sign-in or sign-out. */
import { byId, h } from "./dom.js";
import { createNode } from "./node.js";
import { messageOf, note, showNotice } from "./parts.js";
import { createProofs } from "./proof/proofs.js";
import { readRoute, type Route } from "./routes.js";
import { markCurrentLink, startShell } from "./shell/shell.js";
import { setUpSignIn } from "./shell/sign-in.js";
import type { View, ViewContext } from "./view.js";
import { viewBlock } from "./views/block.js";
import { viewBlocks } from "./views/blocks.js";
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
import { viewTransactions } from "./views/transactions.js";
import { viewTree } from "./views/tree.js";
import { viewChange, viewNewProgram } from "./views/write.js";

const node = createNode(location);
const proofs = createProofs(node);
const main = byId("main");
const search = byId("q") as HTMLInputElement;
let currentView = new AbortController();

async function renderView(context: ViewContext, route: Route | undefined): Promise<View> {
  switch (route?.kind) {
    case undefined:
      return { title: "Nothing here", contents: [note("The explorer has no view at this address.")] };
    case "overview":
      return await viewOverview(context);
    case "block":
      return await viewBlock(context, route.name);
    case "transaction":
      return await viewTransaction(context, route.hash);
    case "program":
      return await viewProgram(context, route.address);
    case "owner":
      return await viewOwner(context, route.key);
    case "tree":
      return await viewTree(context, route.commitment);
    case "nullifier":
      return await viewNullifier(context, route.hash);
    case "blocks":
      return await viewBlocks(context);
    case "transactions":
      return await viewTransactions(context);
    case "peers":
      return await viewPeers(context);
    case "snapshots":
      return await viewSnapshots(context);
    case "forks":
      return await viewForks(context);
    case "log":
      return await viewLog(context);
    case "keys":
      return await viewKeys(context);
    case "new":
      return await viewNewProgram(context);
    case "change":
      return await viewChange(context, route.address);
    case "search":
      return await viewSearch(context, route.text);
  }
}

/**
 * Shows the view of the current route.
 *
 * @param isNavigation true after a navigation: the title is focused, so that screen readers announce it.
 */
async function show(isNavigation: boolean): Promise<void> {
  currentView.abort();
  const { signal } = (currentView = new AbortController());
  const route = readRoute(location.hash);
  search.value = route?.kind === "search" ? route.text : "";
  markCurrentLink();
  showNotice(undefined);
  main.setAttribute("aria-busy", "true");
  const view = await renderView({ node, proofs, signal, signIn }, route).catch((error: unknown): View => ({
    title: "Not found",
    contents: [h("p", {}, messageOf(error))],
  }));
  if (signal.aborted) {
    return;
  }
  const heading = h("h1", { tabindex: -1 }, view.title);
  main.replaceChildren(heading, ...view.contents);
  main.removeAttribute("aria-busy");
  document.title = `${view.title} · Gatehouse explorer`;
  if (isNavigation) {
    heading.focus();
    scrollTo(0, 0);
  }
}

const signIn = setUpSignIn(node.session);
node.session.onChange(() => void show(true));
// The fragment of the URL is the route, so that the skip link cannot use its fragment and moves the focus by script.
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => void show(true));
startShell(node);
void show(false);
