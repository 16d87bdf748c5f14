// @ts-check
/** Shows the events of the chain with the EventSource of the browser. Resumes after a reload. */

/** Formats each kind of event. @type {Record<string, (event: any) => string>} */
const kinds = {
  block: ({ hash, transactionCount }) => `${hash}, transactions: ${transactionCount}`,
  transaction: ({ hash, outcome, withheld }) => `${hash} ${withheld ? "withheld" : outcome}`,
  program: ({ storageAddress, change, fields }) => `${storageAddress} ${change} ${fields.join(", ")}`,
};
const maxShown = 200;
const retryMs = 5_000;

/** @param {string} selector @returns {HTMLElement} */
const find = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));
/** @param {string} text */
const setStatus = (text) => (find('[role="status"]').textContent = text);

/** @type {EventSource | undefined} */
let source;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retryTimer;

/** Watches a node from the last event that this page has shown, or from now on. @param {string} url */
function watch(url) {
  stop();
  const query = new URLSearchParams(Object.keys(kinds).map((kind) => ["kinds", kind]));
  // The cursor for a reload. While the page is open, the browser itself resumes after the last event.
  query.set("from", localStorage.getItem(`cursor of ${url}`) ?? "");
  const address = new URL(`/events?${query}`, url);
  const opened = (source = new EventSource(address));
  setStatus("Connecting …");
  opened.onopen = () => setStatus("Watching.");
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
      setStatus("The connection is lost; the browser reconnects and resumes.");
    } else {
      void explain(url, address);
    }
  };
}

function stop() {
  source?.close();
  clearTimeout(retryTimer);
}

/** Shows the error of the node, and retries if possible; EventSource does neither. @param {string} url @param {URL} address */
async function explain(url, address) {
  const controller = new AbortController();
  const failed = source;
  try {
    const response = await fetch(address, { signal: controller.signal });
    const { error, errorCode, retryAfter } = response.ok ? { retryAfter: 1 } : await response.json();
    if (failed === source) {
      setStatus(response.ok ? "Connecting …" : `${error} (${errorCode})`);
      retryTimer = retryAfter === undefined ? undefined : setTimeout(() => watch(url), retryAfter * 1000);
    }
  } catch {
    if (failed === source) {
      setStatus("No node responds at this address.");
      retryTimer = setTimeout(() => watch(url), retryMs);
    }
  }
  controller.abort();
}

/** @param {string} cursor @param {string} kind @param {any} event */
function show(cursor, kind, event) {
  const item = document.createElement("li");
  item.textContent = `${cursor} ${kind} ${kinds[kind]?.(event)}`;
  const list = find("#events");
  list.prepend(item);
  list.children[maxShown]?.remove();
}

find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.currentTarget);
  const url = new URL(String(new FormData(form).get("url"))).origin;
  if (event.submitter?.getAttribute("value") === "restart") {
    localStorage.removeItem(`cursor of ${url}`);
  }
  watch(url);
});
