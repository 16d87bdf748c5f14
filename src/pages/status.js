"use strict";
/**
 * Looks at the node when it tells of a change, and shows what it says; what it does not say any more is shown as what it
 * was.
 */

/** How soon after a look the next one may come, and how late it comes: where the node tells of changes, and where not. */
const lookMs = { soonest: 1000, told: 10_000, untold: 2000 };
/** How soon a stream that was refused is asked for again. */
const streamAgainMs = 30_000;
const at = (id) => document.getElementById(id);

/** Text only: whatever peers and logs say stays text. `name` says what it is where the columns' heads are not seen. */
function cell(text, className = "", name = undefined) {
  const td = element("td", className, String(text));
  td.setAttribute("role", "cell");
  if (name !== undefined) td.dataset.name = name;
  return td;
}

function rows(body, lines) {
  body.replaceChildren(
    ...lines.map((cells) => {
      const tr = element("tr", "", ...cells);
      tr.setAttribute("role", "row");
      return tr;
    }),
  );
}

/** Who listens to the page is told of what has changed alone. */
function say(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

function showHealth(health) {
  const { status, main_loop: loop, subsystems, ports } = health;
  say("status", status);
  at("status").className = `badge ${statusClass[status] ?? ""}`;
  const reasons = reasonsOf(health);
  if (reasons.join("\n") !== [...at("reasons").children].map((li) => li.textContent).join("\n"))
    at("reasons").replaceChildren(...reasons.map((reason) => element("li", "", reason)));
  at("reasons").hidden = reasons.length === 0;
  at("reasons").className = statusClass[status] === "bad" ? "bad" : "warn";
  at("title").textContent = `Gatehouse ${health.version} “${health.version_name}”`;
  at("summary").textContent =
    `Up ${duration(health.uptime_s)}. ${health.accepting ? "Accepting: synced and taking transactions." : "Not accepting."} ${health.errors.uncaught_total} uncaught errors.`;
  at("boot").textContent = bootLine(health.boot);
  at("loop").textContent = loopLine(loop);
  const sync = subsystems.main_loop.extra?.sync;
  at("sync").hidden = !sync;
  if (sync) at("sync").textContent = syncLine(sync);
  rows(
    at("subsystems"),
    Object.entries(subsystems).map(([name, state]) => {
      const port = ports[name];
      const shown =
        port === undefined ? "" : port.drifted ? `${port.actual}, asked for ${port.requested}` : String(port.actual);
      return [
        cell(name, "name"),
        cell(state.status, statusClass[state.status] ?? "dim"),
        cell(whyOf(state), state.status === "ready" ? "why dim" : "why"),
        cell(state.since === null ? "" : ago(state.since), "small", "since"),
        cell(shown, port?.drifted ? "warn" : "small", "port"),
      ];
    }),
  );
}

function showNode({ identity, connectionString, peerlist: peers }) {
  say("node", identity);
  say("address", connectionString);
  rows(
    at("peers"),
    peers.length === 0
      ? [[cell("The node knows no peers.")]]
      : peers.map(({ connection, identity: key, verification, sync, status }) => {
          const state = status.ready ? "ready" : status.online ? "online" : "offline";
          return [
            cell(connection.string, "name"),
            cell(state, { ready: "good", online: "warn", offline: "bad" }[state]),
            cell(verification.message ?? (verification.status ? "verified" : ""), "why"),
            cell(sync.block ?? "", "small", "block"),
            cell(ago(status.timestamp), "small", "seen"),
            cell(key === "" ? "unknown" : `${key.slice(0, 10)}…${key.slice(-4)}`, "small", "identity"),
          ];
        }),
  );
}

function showLog(lines) {
  at("log").replaceChildren(
    ...lines
      .slice(-15)
      .reverse()
      .map(({ time, message }) => {
        const stamp = element("time", "", new Date(time).toLocaleTimeString());
        stamp.dateTime = new Date(time).toISOString();
        return element("li", "", stamp, message);
      }),
  );
}

function showHistory(health, { peerlist }, head, { database, everyMs: apartMs, ...columns }) {
  say("network", head?.genesisHash ?? "none yet: the node has no genesis");
  say("database", database);
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
  // By another clock than the node's the last points may be yet to come.
  showPlots([...points, { ...now, atMs: Math.max(now.atMs, (points.at(-1)?.atMs ?? 0) + 1) }], apartMs);
}

/** The body of an answer, also of a status that says something of it; the sentence of a failure is thrown. */
async function ask(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(5000) });
  const body = await response.json();
  if (!response.ok && typeof body.error === "string") throw new Error(body.error);
  return body;
}

/** The points behind, which there is one more of each minute. */
async function askData() {
  if (data === undefined || Date.now() - data.atMs > data.body.everyMs / 2)
    data = { atMs: Date.now(), body: await ask("status/data") };
  return data.body;
}

/** No block 0 yet is no trouble of the page. */
const askHead = () => ask("chain/head").catch((error) => (error.name === "Error" ? undefined : Promise.reject(error)));

async function look() {
  lookedMs = Date.now();
  nextMs = Infinity;
  try {
    const [health, node, log, head, past] = await Promise.all([
      ...["health", "info", "public_logs"].map(ask),
      askHead(),
      askData(),
    ]);
    showHealth(health);
    showNode(node);
    showLog(log);
    showHistory(health, node, head, past);
    document.title = `${health.status} · ${new URL(node.connectionString).host} · Gatehouse`;
    lastMs = Date.now();
    showStale(undefined);
  } catch (error) {
    showStale(error);
  }
  isLooking = false;
  const apartMs = [...told.values()].every((isOpen) => isOpen) ? lookMs.told : lookMs.untold;
  lookIn(document.hidden ? 5 * apartMs : apartMs);
}

/** Looks after that time, or before where it is to be sooner anyway. */
function lookIn(ms) {
  nextMs = Math.min(nextMs, Math.max(Date.now() + ms, lookedMs + lookMs.soonest));
  if (isLooking) return;
  clearTimeout(timer);
  timer = setTimeout(
    () => {
      isLooking = true;
      look();
    },
    Math.max(0, nextMs - Date.now()),
  );
}

/** Has a look follow whatever a stream tells. The browser makes one that is lost anew, but not one that was refused. */
function listen(path, event) {
  const source = new EventSource(path);
  const hear = () => {
    told.set(path, source.readyState === EventSource.OPEN);
    lookIn(0);
  };
  source.addEventListener(event, hear);
  source.addEventListener("open", hear);
  source.addEventListener("error", () => {
    hear();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(path, event), streamAgainMs);
  });
}

/** Greys what is not known to be true any more, and says since when; the running time is in the title alone. */
function showStale(error) {
  for (const part of document.querySelectorAll(".shown")) part.classList.toggle("stale", error !== undefined);
  at("trouble").hidden = error === undefined;
  if (error === undefined) return;
  const since = lastMs === undefined ? "since this page was opened" : `since ${new Date(lastMs).toLocaleTimeString()}`;
  const cause =
    { Error: error.message, TimeoutError: "The node did not respond within 5 s." }[error.name] ??
    "The node does not respond.";
  say("trouble", `Nothing new ${since}. ${cause} The values below are of that time.`);
  document.title = `no response${lastMs === undefined ? "" : ` for ${duration((Date.now() - lastMs) / 1000)}`} · Gatehouse`;
}

/** When the node last answered. */
let lastMs;
let data;
/** Whether each stream is open, by its path. */
const told = new Map();
let lookedMs = 0;
let nextMs = Infinity;
let isLooking = false;
let timer;
layPlots();
listen("health/watch", "message");
// The header hears of blocks, for all scripts of the page.
document.addEventListener("gatehouse-block", () => lookIn(0));
lookIn(0);
