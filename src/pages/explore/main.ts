/** Shows the view that the address names, and loads it again when the reader signs in or out. */
import { at, h } from "./dom.js";
import { createNode } from "./node.js";
import { messageOf, note, tell } from "./parts.js";
import { createProofs } from "./proofs.js";
import { readRoute, type Route } from "./routes.js";
import { markPage, startShell } from "./shell.js";
import { layOutSignIn } from "./sign-in.js";
import type { Looking, View } from "./view.js";
import { viewBlock } from "./views/block.js";
import { viewBlocks } from "./views/blocks.js";
import { viewForks } from "./views/forks.js";
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

const node = createNode(location);
const proofs = createProofs(node);
const main = at("main");
const search = at("q") as HTMLInputElement;
let shown = new AbortController();

async function viewOf(looking: Looking, route: Route | undefined): Promise<View> {
  switch (route?.kind) {
    case undefined:
      return { title: "Nothing here", contents: [note("This link names no view of the explorer.")] };
    case "overview":
      return await viewOverview(looking);
    case "block":
      return await viewBlock(looking, route.name);
    case "transaction":
      return await viewTransaction(looking, route.hash);
    case "program":
      return await viewProgram(looking, route.address);
    case "owner":
      return await viewOwner(looking, route.key);
    case "tree":
      return await viewTree(looking, route.commitment);
    case "nullifier":
      return await viewNullifier(looking, route.hash);
    case "blocks":
      return await viewBlocks(looking);
    case "transactions":
      return await viewTransactions(looking);
    case "peers":
      return await viewPeers(looking);
    case "snapshots":
      return await viewSnapshots(looking);
    case "forks":
      return await viewForks(looking);
    case "log":
      return await viewLog(looking);
    case "search":
      return await viewSearch(looking, route.text);
  }
}

/** @param isMove true for another view: its title is announced and focused. */
async function show(isMove: boolean): Promise<void> {
  shown.abort();
  const { signal } = (shown = new AbortController());
  const route = readRoute(location.hash);
  search.value = route?.kind === "search" ? route.text : "";
  markPage();
  tell(undefined);
  main.setAttribute("aria-busy", "true");
  const view = await viewOf({ node, proofs, signal, signIn }, route).catch((error: unknown): View => ({
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
  if (isMove) {
    heading.focus();
    scrollTo(0, 0);
  }
}

const signIn = layOutSignIn(node.session, () => void show(true));
// The part behind # names views, so what the link of the page leads to is found by hand.
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => void show(true));
startShell(node);
void show(false);
