/** Search box of the header, with suggestions while the reader types, and the last searches before that. */
import type { SearchAnswer } from "./answers.js";
import { at, h } from "./dom.js";
import { type Http, withQuery } from "./http.js";
import { linkTo } from "./routes.js";
import { foundOf } from "./views/search.js";

/** Time in milliseconds without a key press after which the node is asked. */
const typingMs = 200;
const maxSuggestions = 8;
const maxRecent = 5;
const storageKey = "gatehouse.searches";

interface Suggestion {
  readonly name: string;
  readonly what: string;
  readonly choose: () => void;
}

/** Makes the search box of the header work. */
export function layOutSearch(node: Pick<Http, "ask">): void {
  const input = at("q") as HTMLInputElement;
  const list = at("q-list");
  let shown: readonly Suggestion[] = [];
  let active = -1;
  let asking = new AbortController();

  const open = (address: string, text: string): void => {
    remember(text);
    close();
    location.href = `explore${address}`;
  };
  function close(): void {
    asking.abort();
    show([]);
  }
  function show(suggestions: readonly Suggestion[]): void {
    shown = suggestions;
    list.replaceChildren(
      ...suggestions.map(({ name, what, choose }, i) => {
        const option = h(
          "li",
          { role: "option", id: `q-${i}` },
          h("bdi", {}, name),
          " ",
          h("span", { class: "dim" }, what),
        );
        // The box keeps the focus, so that a click is no way out of it.
        option.addEventListener("mousedown", (event) => event.preventDefault());
        option.addEventListener("click", choose);
        return option;
      }),
    );
    list.hidden = suggestions.length === 0;
    input.setAttribute("aria-expanded", String(suggestions.length > 0));
    activate(-1);
  }
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
    asking.abort();
    const { signal } = (asking = new AbortController());
    const text = input.value.trim();
    if (text === "") {
      const recent = readRecent();
      const entries = recent.map((name) => ({
        name,
        what: "searched before",
        choose: () => open(addressOf(name), name),
      }));
      const forget = (): void => {
        store([]);
        close();
      };
      const clear = { name: "Clear", what: "forget these searches", choose: forget };
      show(recent.length === 0 ? [] : [...entries, clear]);
      return;
    }
    setTimeout(() => {
      if (!signal.aborted) {
        node.ask<SearchAnswer>(withQuery("search", { q: text }), signal).then(
          ({ results }) => {
            const found = results.map(foundOf).filter((one) => one !== undefined);
            show(
              found
                .slice(0, maxSuggestions)
                .map(({ name, what, route }) => ({ name, what, choose: () => open(linkTo(route), text) })),
            );
          },
          // A suggestion that fails is none; the search itself says why.
          () => undefined,
        );
      }
    }, typingMs);
  }

  input.addEventListener("input", suggest);
  input.addEventListener("focus", suggest);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && shown.length > 0) {
      event.preventDefault();
      // The position before the first is the box itself.
      activate(((active + 1 + step + shown.length + 1) % (shown.length + 1)) - 1);
    } else if (event.key === "Escape" && shown.length > 0) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      shown[active]!.choose();
    }
  });
  at("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text !== "") {
      open(addressOf(text), text);
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

const addressOf = (text: string): string => linkTo({ kind: "search", text });

function isTyping(target: EventTarget | null): boolean {
  const isField = target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  return isField || document.querySelector("dialog[open]") !== null;
}

/** Returns the last searches, latest first; none if storage is blocked or holds something else. */
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
    // Storage may be blocked: then nothing is remembered.
  }
}
