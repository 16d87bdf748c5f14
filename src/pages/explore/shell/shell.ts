/** Header and footer of all pages: network, health, latest block, search, colors, version, key and genesis. */
import type { HeadResponse } from "../responses.js";
import { byId, h, setText } from "../dom.js";
import type { Http } from "../http.js";
import { watchBlocks } from "../live.js";
import { timeAgo, updateTimes } from "../parts.js";
import { linkTo, readRoute, type Route } from "../routes.js";
import { setUpSearch } from "./suggestions.js";
import { short } from "../format.js";

const healthIntervalMs = 10_000;
const statusClass: Readonly<Record<string, string>> = { ok: "good", degraded: "warn", dormant: "warn", failing: "bad" };

/** Event on `document` for each new block, with its number as detail. status.js listens to it, too. */
const blockEvent = "gatehouse-block";

/** Fills the header and the footer, and updates them while the page is open. */
export function startShell(node: Http): void {
  setUpTheme();
  setUpSearch(node);
  markCurrentLink();
  void showNetwork(node);
  void showHealth(node);
  watchBlocks(node, new AbortController().signal, {
    onBlock(number) {
      document.dispatchEvent(new CustomEvent(blockEvent, { detail: number }));
      void showBlock(node, number);
    },
    onError: (error) => byId("shell-block").classList.toggle("stale", error !== undefined),
  });
  setInterval(updateTimes, 1_000);
}

/** Views that list the items of other views. */
const listOf: Readonly<Partial<Record<Route["kind"], Route>>> = {
  block: { kind: "blocks" },
  transaction: { kind: "transactions" },
  tree: { kind: "tree" },
};

/** Marks the navigation link to the current page or view, or to the list that has the item of the view. */
export function markCurrentLink(): void {
  const current = location.href.replace(/\?.*/, "").replace(/explore(#\/?)?$/, "explore#/");
  const list = listOf[readRoute(location.hash)?.kind ?? "overview"];
  const hrefOfList = list && `explore${linkTo(list)}`;
  const menu = byId("pages");
  // A link to another view of this page leaves the menu open. Browsers without popovers have no menu.
  if ("popover" in menu && menu.matches(":popover-open")) {
    menu.hidePopover();
  }
  for (const link of document.querySelectorAll<HTMLAnchorElement>(".shell nav a")) {
    const isCurrent = link.href === (link.hash === "" ? current.replace(/#.*/, "") : current);
    link.toggleAttribute("aria-current", false);
    if (isCurrent || link.getAttribute("href") === hrefOfList) {
      link.setAttribute("aria-current", isCurrent ? "page" : "true");
    }
  }
}

function setUpTheme(): void {
  const theme = byId("theme") as HTMLSelectElement;
  theme.value = document.documentElement.dataset["theme"] ?? "";
  theme.addEventListener("change", () => {
    document.documentElement.dataset["theme"] = theme.value;
    try {
      localStorage.setItem("gatehouse.theme", theme.value);
    } catch {
      // Storage may be blocked. The choice then applies to this page only.
    }
  });
}

/** Shows the network and the key, which never change. Skips values that are not available, as while the node starts. */
async function showNetwork(node: Http): Promise<void> {
  const [head, genesis, key] = await Promise.all([
    node.fetchJson<HeadResponse>("chain/head").catch(() => undefined),
    node.fetchJson<{ readonly name?: unknown }>("genesis").catch(() => undefined),
    node.fetchJson<string>("publickey").catch(() => undefined),
  ]);
  const name = typeof genesis?.name === "string" && genesis.name.trim() !== "" ? genesis.name.slice(0, 200) : undefined;
  if (head !== undefined) {
    setText(byId("shell-network"), name ?? short(head.genesisHash));
    byId("shell-network").title = `${name ?? "Network"}, genesis ${head.genesisHash}`;
    setDigits("shell-genesis", head.genesisHash);
  }
  if (key !== undefined) {
    setDigits("shell-key", key);
  }
}

function setDigits(id: string, text: string): void {
  setText(byId(id), text);
  byId(id).dataset["short"] = short(text);
}

async function showHealth(node: Http): Promise<void> {
  if (!document.hidden) {
    const health = await node.fetchHealth();
    const badge = byId("shell-status");
    setText(badge, health?.status ?? "no response");
    badge.className = `badge ${statusClass[health?.status ?? ""] ?? "bad"}`;
    if (health !== undefined) {
      setText(byId("shell-version"), `Gatehouse ${health.version}`);
    }
  }
  setTimeout(() => void showHealth(node), healthIntervalMs);
}

async function showBlock(node: Http, number: number): Promise<void> {
  const head = await node.fetchJson<HeadResponse>("chain/head").catch(() => undefined);
  if (head !== undefined && head.number >= number) {
    const link = h(
      "a",
      { href: `explore${linkTo({ kind: "block", name: String(head.number) })}` },
      `Block ${head.number}`,
    );
    // The genesis file may have any timestamp, so that the age of block 0 means nothing.
    byId("shell-block").replaceChildren(
      link,
      ...(head.number === 0 ? [] : [h("span", { class: "age" }, ", ", timeAgo(head.timestamp))]),
    );
  }
}
