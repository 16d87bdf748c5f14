/** Search box of the header. Suggests results while the reader types, and recent searches while the box is empty. */
import type { SearchResponse } from "../responses.js";
import { byId, h } from "../dom.js";
import { type Http, withQuery } from "../http.js";
import { linkTo } from "../routes.js";
import { namedResult } from "../views/search.js";

/** Time in milliseconds without input after which suggestions are requested. */
const debounceMs = 200;
const maxSuggestions = 8;
const maxRecent = 5;
const storageKey = "gatehouse.searches";

interface Suggestion {
  readonly name: string;
  readonly description: string;
  readonly choose: () => void;
}

/** Adds suggestions and keyboard control to the search box. */
export function setUpSearch(node: Pick<Http, "fetchJson">): void {
  const input = byId("q") as HTMLInputElement;
  const list = byId("q-list");
  let shown: readonly Suggestion[] = [];
  let active = -1;
  let pending = new AbortController();

  const open = (route: string, text: string): void => {
    remember(text);
    close();
    location.href = `explore${route}`;
  };
  function close(): void {
    pending.abort();
    show([]);
  }
  function show(suggestions: readonly Suggestion[]): void {
    shown = suggestions;
    list.replaceChildren(
      ...suggestions.map(({ name, description, choose }, i) => {
        const option = h(
          "li",
          { role: "option", id: `q-${i}` },
          h("bdi", {}, name),
          " ",
          h("span", { class: "dim" }, description),
        );
        // Keeps the focus in the search box, since losing the focus closes the list before the click.
        option.addEventListener("mousedown", (event) => event.preventDefault());
        option.addEventListener("click", choose);
        return option;
      }),
    );
    list.hidden = suggestions.length === 0;
    input.setAttribute("aria-expanded", String(suggestions.length > 0));
    activate(-1);
  }
  /** Selects an option; -1 selects none. */
  function activate(index: number): void {
    active = index;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === index)));
    if (index < 0) {
      input.removeAttribute("aria-activedescendant");
    } else {
      input.setAttribute("aria-activedescendant", `q-${index}`);
      list.children[index]!.scrollIntoView({ block: "nearest" });
    }
  }

  function suggest(): void {
    pending.abort();
    const { signal } = (pending = new AbortController());
    const text = input.value.trim();
    if (text === "") {
      const recent = readRecent();
      const entries = recent.map((name) => ({
        name,
        description: "searched before",
        choose: () => open(searchRoute(name), name),
      }));
      const forget = (): void => {
        store([]);
        close();
      };
      const clear = { name: "Clear", description: "forget these searches", choose: forget };
      show(recent.length === 0 ? [] : [...entries, clear]);
      return;
    }
    setTimeout(() => {
      if (!signal.aborted) {
        node.fetchJson<SearchResponse>(withQuery("search", { q: text }), signal).then(
          ({ results }) => {
            const known = results.map(namedResult).filter((result) => result !== undefined);
            show(
              known
                .slice(0, maxSuggestions)
                .map(({ name, kind, route }) => ({ name, description: kind, choose: () => open(linkTo(route), text) })),
            );
          },
          // Errors are not shown here; submitting the search shows them.
          () => undefined,
        );
      }
    }, debounceMs);
  }

  input.addEventListener("input", suggest);
  input.addEventListener("focus", suggest);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && shown.length > 0) {
      event.preventDefault();
      // Index -1 is the search box: the selection wraps around through it.
      activate(((active + 1 + step + shown.length + 1) % (shown.length + 1)) - 1);
    } else if (event.key === "Escape" && shown.length > 0) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      shown[active]!.choose();
    }
  });
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text !== "") {
      open(searchRoute(text), text);
    }
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
}

const searchRoute = (text: string): string => linkTo({ kind: "search", name: text });

function isTyping(target: EventTarget | null): boolean {
  const isField = target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  return isField || document.querySelector("dialog[open]") !== null;
}

/** Returns the recent searches, latest first; none if storage is blocked or has invalid data. */
function readRecent(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "[]");
    return Array.isArray(stored) ? stored.filter((text) => typeof text === "string").slice(0, maxRecent) : [];
  } catch {
    return [];
  }
}

function remember(text: string): void {
  store([text, ...readRecent().filter((other) => other !== text)].slice(0, maxRecent));
}

function store(searches: readonly string[]): void {
  try {
    localStorage.setItem(storageKey, JSON.stringify(searches));
  } catch {
    // Storage may be blocked. Searches are then not stored.
  }
}
