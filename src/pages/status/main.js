/**
 * Script of /status. Polls the node after each event of its streams, and at an interval. If the node does not respond,
 * the last values remain, marked as stale.
 */
import "../explore/shell/shell-page.ts";
import { copyable } from "../explore/copy.ts";
import { byId, h, setText as setTextOf } from "../explore/dom.ts";
import { linkTo } from "../explore/routes.ts";
import { short } from "../explore/format.ts";
import { createPlots, showPlots, statusClass } from "./plots.js";
import { ago, bootLine, duration, loopLine, reasonOf, reasonsOf, syncLine } from "./words.js";

/** Minimum time between polls, and the poll interval with and without open streams, in milliseconds. */
const pollMs = { min: 1000, withStreams: 10_000, withoutStreams: 2000 };
/** Time in milliseconds after which a rejected stream is requested again. */
const streamRetryMs = 30_000;

/**
 * Creates a table cell. On narrow screens, which hide the table head, the cell shows `name` as its label.
 *
 * @param content an element, or a text, never markup.
 */
function cell(content, className = "", name = undefined) {
  return h("td", { role: "cell", class: className || undefined, "data-name": name }, content);
}

/** Returns a link to a view of the explorer. */
function viewLink(kind, name, content = name) {
  return h("a", { href: `explore${linkTo({ kind, name: String(name) })}` }, content);
}

/** Returns the first and last digits of a key, as a link to its owner with a button that copies it. */
function keyLink(key) {
  return copyable(viewLink("owner", key, h("code", { title: key }, short(key))), key);
}

/** Shows a value that rarely changes. Keeps its elements, and so the focus, while the value is the same. */
function showValue(id, text, build) {
  const place = byId(id);
  if (place.dataset.text !== text) {
    place.dataset.text = text;
    place.replaceChildren(build());
  }
}

/** Replaces the rows of a table. */
function setRows(body, lines) {
  body.replaceChildren(...lines.map((cells) => h("tr", { role: "row" }, ...cells)));
}

const setText = (id, text) => setTextOf(byId(id), text);

function showHealth(health) {
  const { status, main_loop: loop, subsystems, ports } = health;
  setText("status", status);
  byId("status").className = `badge ${statusClass[status] ?? ""}`;
  const reasons = reasonsOf(health);
  if (reasons.join("\n") !== [...byId("reasons").children].map((li) => li.textContent).join("\n"))
    byId("reasons").replaceChildren(...reasons.map((reason) => h("li", {}, reason)));
  byId("reasons").hidden = reasons.length === 0;
  byId("reasons").className = statusClass[status] === "bad" ? "bad" : "warn";
  byId("title").textContent = `Gatehouse ${health.version} “${health.version_name}”`;
  byId("summary").textContent =
    `Up ${duration(health.uptime_s)}. ${health.accepting ? "Accepting: synced, accepts transactions." : "Not accepting."} ${health.errors.uncaught_total} uncaught errors.`;
  byId("boot").textContent = bootLine(health.boot);
  byId("loop").textContent = loopLine(loop);
  const sync = subsystems.main_loop.extra?.sync;
  byId("sync").hidden = !sync;
  if (sync) byId("sync").textContent = syncLine(sync);
  setRows(
    byId("subsystems"),
    Object.entries(subsystems).map(([name, state]) => {
      const port = ports[name];
      // Port 0 requests any free port.
      const isOther = port?.drifted && port.requested !== 0;
      const shown =
        port === undefined ? "" : isOther ? `${port.actual} instead of ${port.requested}` : String(port.actual);
      return [
        cell(name, "name"),
        cell(state.status, statusClass[state.status] ?? "dim"),
        cell(reasonOf(state), state.status === "ready" ? "why dim" : "why"),
        cell(state.since === null ? "" : ago(state.since), "small", "since"),
        cell(shown, isOther ? "warn" : "small", "port"),
      ];
    }),
  );
}

/** Returns a hash or key in one line, of which a narrow window shows the first and last digits. */
function digits(text) {
  return h("code", { class: "digits", "data-short": short(text) }, text);
}

function showNode({ identity, connectionString, peerlist: peers }) {
  showValue("node", identity, () => copyable(viewLink("owner", identity, digits(identity)), identity));
  showValue("address", connectionString, () => copyable(h("code", {}, connectionString), connectionString));
  setRows(
    byId("peers"),
    peers.length === 0
      ? [[cell("The node knows no peers.")]]
      : peers.map(({ connection, identity: key, verification, sync, status }) => {
          const state = status.ready ? "ready" : status.online ? "online" : "offline";
          return [
            cell(connection.string, "name"),
            cell(state, { ready: "good", online: "warn", offline: "bad" }[state]),
            cell(verification.message ?? (verification.status ? "verified" : ""), "why"),
            cell(sync.block ? viewLink("block", sync.block) : (sync.block ?? ""), "small", "block"),
            cell(ago(status.timestamp), "small", "seen"),
            cell(key === "" ? "unknown" : keyLink(key), "small", "identity"),
          ];
        }),
  );
}

function showLog(lines) {
  byId("log").replaceChildren(
    ...lines
      .slice(-15)
      .reverse()
      .map(({ time, message }) => {
        const at = new Date(time);
        return h("li", {}, h("time", { datetime: at.toISOString() }, at.toLocaleTimeString()), message);
      }),
  );
}

function showHistory(health, { peerlist }, head, { database, everyMs, ...columns }) {
  const genesis = head?.genesisHash;
  showValue("network", genesis ?? "", () =>
    genesis === undefined
      ? "none yet: the node has no genesis"
      : copyable(h("a", { href: "genesis" }, digits(genesis)), genesis),
  );
  setText("database", database);
  const verified = peerlist.filter(({ verification }) => verification.status);
  const blocks = verified.map(({ sync }) => sync.block).filter((block) => block !== null);
  const now = {
    atMs: Date.now(),
    status: health.status,
    block: head?.number ?? null,
    behind: head === undefined || blocks.length === 0 ? null : Math.max(0, Math.max(...blocks) - head.number),
    pending: health.mempool_size,
    online: verified.filter(({ status }) => status.online).length,
  };
  const points = columns.atMs.map((_, i) =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[i]])),
  );
  // If the clock of the browser is behind that of the node, the last points may be in the future.
  showPlots([...points, { ...now, atMs: Math.max(now.atMs, (points.at(-1)?.atMs ?? 0) + 1) }], everyMs);
}

/**
 * Requests JSON. Throws an Error with the message if the response has one; a failing node has a body without message.
 */
async function fetchJson(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(5000) });
  const body = await response.json();
  if (!response.ok && typeof body.error === "string") throw new Error(body.error);
  return body;
}

/** Returns the history. Requests it only if a new point may exist. */
async function fetchHistory() {
  if (data === undefined || Date.now() - data.atMs > data.body.everyMs / 2)
    data = { atMs: Date.now(), body: await fetchJson("status/data") };
  return data.body;
}

/** Returns the latest block; undefined if the node responds with an error, as it does before it has a genesis. */
const fetchHead = () =>
  fetchJson("chain/head").catch((error) => (error.name === "Error" ? undefined : Promise.reject(error)));

/** Loads and shows all values, and schedules the next poll. */
async function poll() {
  polledMs = Date.now();
  nextMs = Infinity;
  try {
    const [health, node, log, head, history] = await Promise.all([
      ...["health", "info", "public_logs"].map(fetchJson),
      fetchHead(),
      fetchHistory(),
    ]);
    showHealth(health);
    showNode(node);
    showLog(log);
    showHistory(health, node, head, history);
    document.title = `${health.status} · ${new URL(node.connectionString).host} · Gatehouse`;
    respondedMs = Date.now();
    showStale(undefined);
  } catch (error) {
    showStale(error);
  }
  isPolling = false;
  const intervalMs = [...openStreams.values()].every((isOpen) => isOpen) ? pollMs.withStreams : pollMs.withoutStreams;
  pollIn(document.hidden ? 5 * intervalMs : intervalMs);
}

/** Schedules a poll in `ms` milliseconds, unless an earlier one is scheduled. */
function pollIn(ms) {
  nextMs = Math.min(nextMs, Math.max(Date.now() + ms, polledMs + pollMs.min));
  if (isPolling) return;
  clearTimeout(timer);
  timer = setTimeout(
    () => {
      isPolling = true;
      poll();
    },
    Math.max(0, nextMs - Date.now()),
  );
}

/** Polls after each event of a stream. The browser reconnects lost streams, but not rejected ones. */
function listen(path, event) {
  const source = new EventSource(path);
  const onChange = () => {
    openStreams.set(path, source.readyState === EventSource.OPEN);
    pollIn(0);
  };
  source.addEventListener(event, onChange);
  source.addEventListener("open", onChange);
  source.addEventListener("error", () => {
    onChange();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(path, event), streamRetryMs);
  });
}

/** Marks values as stale after an error, and shows since when. Only the title has the elapsed time. */
function showStale(error) {
  for (const part of document.querySelectorAll(".shown")) part.classList.toggle("stale", error !== undefined);
  byId("trouble").hidden = error === undefined;
  if (error === undefined) return;
  const since =
    respondedMs === undefined ? "since this page was opened" : `since ${new Date(respondedMs).toLocaleTimeString()}`;
  const cause =
    { Error: error.message, TimeoutError: "The node did not respond within 5 s." }[error.name] ??
    "The node does not respond.";
  setText("trouble", `No updates ${since}. ${cause} The values below are from that time.`);
  document.title = `no response${respondedMs === undefined ? "" : ` for ${duration((Date.now() - respondedMs) / 1000)}`} · Gatehouse`;
}

/** Time of the last response. */
let respondedMs;
let data;
/** State of each stream by its path: true if it is open. */
const openStreams = new Map();
let polledMs = 0;
let nextMs = Infinity;
let isPolling = false;
let timer;
createPlots();
listen("health/watch", "message");
// The script of the header sends this event for each new block.
document.addEventListener("gatehouse-block", () => pollIn(0));
pollIn(0);
