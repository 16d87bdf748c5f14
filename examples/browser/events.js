// @ts-check
/** Shows what happens on the chain, by the EventSource that every browser has; goes on where it was, after a reload, too. */

/** What each kind of event is shown as. @type {Record<string, (event: any) => string>} */
const kinds = {
  block: ({ hash, transactionCount }) => `${hash}, transactions: ${transactionCount}`,
  transaction: ({ hash, outcome, withheld }) => `${hash} ${withheld ? "withheld" : outcome}`,
  program: ({ storageAddress, change, fields }) => `${storageAddress} ${change} ${fields.join(", ")}`,
};
const mostShown = 200;
const pauseMs = 5_000;

/** @param {string} selector @returns {HTMLElement} */
const find = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));
/** @param {string} text */
const say = (text) => (find('[role="status"]').textContent = text);

/** @type {EventSource | undefined} */
let source;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let again;

/** Watches a node from where this page was the last time, or from now on. @param {string} url */
function watch(url) {
  stop();
  const query = new URLSearchParams(Object.keys(kinds).map((kind) => ["kinds", kind]));
  // What the page knows after a reload. While it is open, the browser itself remembers the last one.
  query.set("from", localStorage.getItem(`cursor of ${url}`) ?? "");
  const address = new URL(`/events?${query}`, url);
  const opened = (source = new EventSource(address));
  say("Connecting …");
  opened.onopen = () => say("Watching.");
  for (const kind of [...Object.keys(kinds), "progress"]) {
    opened.addEventListener(kind, ({ data, lastEventId }) => {
      if (kind !== "progress") {
        show(lastEventId, kind, JSON.parse(data)[kind]);
      }
      localStorage.setItem(`cursor of ${url}`, lastEventId);
    });
  }
  opened.onerror = () => {
    if (opened.readyState === EventSource.CONNECTING) {
      say("The connection is lost; the browser makes another one, and goes on.");
    } else {
      void explain(url, address);
    }
  };
}

function stop() {
  source?.close();
  clearTimeout(again);
}

/** An EventSource does not tell why it was refused, and does not try again then. @param {string} url @param {URL} address */
async function explain(url, address) {
  const asking = new AbortController();
  const refused = source;
  try {
    const answer = await fetch(address, { signal: asking.signal });
    const { error, errorCode, retryAfter } = answer.ok ? { retryAfter: 1 } : await answer.json();
    if (refused === source) {
      say(answer.ok ? "Connecting …" : `${error} (${errorCode})`);
      again = retryAfter === undefined ? undefined : setTimeout(() => watch(url), retryAfter * 1000);
    }
  } catch {
    if (refused === source) {
      say("No node answers there.");
      again = setTimeout(() => watch(url), pauseMs);
    }
  }
  asking.abort();
}

/** @param {string} cursor @param {string} kind @param {any} event */
function show(cursor, kind, event) {
  const item = document.createElement("li");
  item.textContent = `${cursor} ${kind} ${kinds[kind]?.(event)}`;
  const list = find("#events");
  list.prepend(item);
  list.children[mostShown]?.remove();
}

find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.currentTarget);
  const url = new URL(String(new FormData(form).get("url"))).origin;
  if (event.submitter?.getAttribute("value") === "anew") {
    localStorage.removeItem(`cursor of ${url}`);
  }
  watch(url);
});
