/** Header and footer of every page: network, health, latest block, search, colors, version, key and genesis. */
import type { HeadAnswer, HealthAnswer } from "./answers.js";
import { at, h, say } from "./dom.js";
import type { Http } from "./http.js";
import { watchBlocks } from "./live.js";
import { renewTimes, timeAgo } from "./parts.js";
import { linkTo } from "./routes.js";
import { layOutSearch } from "./suggestions.js";
import { short } from "./words.js";

const healthEveryMs = 10_000;
const statusClass: Readonly<Record<string, string>> = { ok: "good", degraded: "warn", dormant: "warn", failing: "bad" };

/** Name of the event on `document` for each new block, with its number as detail, for scripts beside this one. */
export const blockEvent = "gatehouse-block";

/** Fills the header and the footer, and keeps them up to date. */
export function startShell(node: Http): void {
  layOutTheme();
  layOutSearch(node);
  markPage();
  void showNetwork(node);
  void showHealth(node);
  watchBlocks(node, new AbortController().signal, {
    onBlock(number) {
      document.dispatchEvent(new CustomEvent(blockEvent, { detail: number }));
      void showBlock(node, number);
    },
    onTrouble: (error) => at("shell-block").classList.toggle("stale", error !== undefined),
  });
  setInterval(renewTimes, 1_000);
}

/** Marks the link to this page; views within the explorer have links of their own. */
export function markPage(): void {
  const here = location.href.replace(/\?.*/, "").replace(/explore(#\/?)?$/, "explore#/");
  for (const link of document.querySelectorAll<HTMLAnchorElement>(".shell nav a")) {
    const isHere = link.href === (link.hash === "" ? here.replace(/#.*/, "") : here);
    link.toggleAttribute("aria-current", false);
    if (isHere) {
      link.setAttribute("aria-current", "page");
    }
  }
}

function layOutTheme(): void {
  const theme = at("theme") as HTMLSelectElement;
  theme.value = document.documentElement.dataset["theme"] ?? "";
  theme.addEventListener("change", () => {
    document.documentElement.dataset["theme"] = theme.value;
    try {
      localStorage.setItem("gatehouse.theme", theme.value);
    } catch {
      // Storage may be blocked: the choice then ends with the page.
    }
  });
}

/** Parts that never change. Whatever is not there yet, as while the node starts, is left as it is. */
async function showNetwork(node: Http): Promise<void> {
  const [head, genesis, key] = await Promise.all([
    node.ask<HeadAnswer>("chain/head").catch(() => undefined),
    node.ask<{ readonly name?: unknown }>("genesis").catch(() => undefined),
    node.ask<string>("publickey").catch(() => undefined),
  ]);
  const name = typeof genesis?.name === "string" && genesis.name.trim() !== "" ? genesis.name.slice(0, 200) : undefined;
  if (head !== undefined) {
    say(at("shell-network"), name ?? short(head.genesisHash));
    at("shell-network").title = `${name ?? "Network"}, genesis ${head.genesisHash}`;
    say(at("shell-genesis"), head.genesisHash);
  }
  if (key !== undefined) {
    say(at("shell-key"), key);
  }
}

async function showHealth(node: Http): Promise<void> {
  if (!document.hidden) {
    const health = await askHealth(node);
    const badge = at("shell-status");
    say(badge, health?.status ?? "no response");
    badge.className = `badge ${statusClass[health?.status ?? ""] ?? "bad"}`;
    if (health !== undefined) {
      say(at("shell-version"), `Gatehouse ${health.version}`);
    }
  }
  setTimeout(() => void showHealth(node), healthEveryMs);
}

/** A node that is failing responds with its health, too, with status 503. */
async function askHealth(node: Http): Promise<HealthAnswer | undefined> {
  try {
    const response = await fetch(node.urlOf("health"), { signal: AbortSignal.timeout(healthEveryMs) });
    return (await response.json()) as HealthAnswer;
  } catch {
    return undefined;
  }
}

async function showBlock(node: Http, number: number): Promise<void> {
  const head = await node.ask<HeadAnswer>("chain/head").catch(() => undefined);
  if (head !== undefined && head.number >= number) {
    const link = h(
      "a",
      { href: `explore${linkTo({ kind: "block", name: String(head.number) })}` },
      `Block ${head.number}`,
    );
    // The genesis may claim any time.
    at("shell-block").replaceChildren(link, ...(head.number === 0 ? [] : [", ", timeAgo(head.timestamp)]));
  }
}
