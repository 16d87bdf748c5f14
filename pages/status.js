"use strict";
const everyMs = 2000;
const kept = 300;
const history = { head: [], mempool: [], peers: [] };
const statusClass = {
  ok: "good",
  ready: "good",
  degraded: "warn",
  dormant: "warn",
  running: "warn",
  pending: "warn",
  failing: "bad",
  failed: "bad",
};
const at = (id) => document.getElementById(id);

/** Text only: whatever peers and logs say stays text. */
function cell(text, className) {
  const td = document.createElement("td");
  td.textContent = text;
  if (className) td.className = className;
  return td;
}

function rows(body, lines) {
  body.replaceChildren(
    ...lines.map((cells) => {
      const tr = document.createElement("tr");
      tr.append(...cells);
      return tr;
    }),
  );
}

function duration(seconds) {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const parts = [];
  for (const [unit, size] of units) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(" ");
}

const ago = (ms) => (ms === null ? "never" : `${duration(Math.max(0, Date.now() - ms) / 1000)} ago`);

function plot(name, value, label) {
  const values = history[name];
  if (value !== null) values.push(value);
  values.splice(0, values.length - kept);
  const svg = at(`plot-${name}`);
  const least = Math.min(...values),
    most = Math.max(...values),
    span = Math.max(most - least, 1);
  const points = values.map(
    (each, i) => `${(300 * i) / Math.max(values.length - 1, 1)},${74 - (68 * (each - least)) / span}`,
  );
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points.length === 1 ? `${points[0]} 300,74` : points.join(" "));
  svg.replaceChildren(line);
  svg.setAttribute(
    "aria-label",
    values.length === 0
      ? `${label}: unknown`
      : `${label}: ${values.at(-1)}, between ${least} and ${most} in the last ${duration((values.length * everyMs) / 1000)}`,
  );
}

function showHealth(health) {
  const badge = at("status");
  if (badge.textContent !== health.status) badge.textContent = health.status;
  const causes =
    health.status === "failing" || health.status === "degraded"
      ? Object.values(health.subsystems).filter(({ status }) => status === "failed")
      : [];
  at("cause").textContent = causes.map(({ lastError }) => lastError?.message ?? "").join(" ");
  badge.className = `badge ${statusClass[health.status] ?? ""}`;
  document.title = `${health.status} · Gatehouse`;
  at("title").textContent = `Gatehouse ${health.version} “${health.version_name}”`;
  at("summary").textContent =
    `Up ${duration(health.uptime_s)}. ${health.accepting ? "Accepting: synced and taking part." : "Not accepting: not synced, or catching up."} ${health.errors.uncaught_total} uncaught errors.`;
  const { boot, main_loop: loop } = health;
  at("boot").textContent =
    `Boot ${boot.complete ? "complete" : `at ${boot.current}`}: ${boot.steps_ready} ready, ${boot.steps_failed} failed, ${boot.steps_skipped} skipped of ${boot.steps_total} steps.`;
  at("loop").textContent = loop.exited
    ? `Main loop exited: ${loop.exit_reason}`
    : loop.heartbeat_age_s === null
      ? "Main loop: no tick yet."
      : `Main loop: ${loop.iterations_total} ticks, the last ${duration(loop.heartbeat_age_s)} ago.`;
  const sync = health.subsystems.main_loop.extra?.sync;
  at("sync").hidden = sync === undefined;
  if (sync)
    at("sync").textContent =
      `Catching up: block ${sync.block} of ${sync.targetBlock}, ${sync.blocks_per_s} a second${sync.left_s === null ? "" : `, ${duration(sync.left_s)} left`}.`;
  rows(
    at("subsystems"),
    Object.entries(health.subsystems).map(([name, state]) => {
      const port = health.ports[name];
      const shown =
        port === undefined ? "" : port.drifted ? `${port.actual}, asked for ${port.requested}` : String(port.actual);
      return [
        cell(name),
        cell(state.status, statusClass[state.status]),
        cell(state.since === null ? "" : ago(state.since)),
        cell(shown, port?.drifted ? "warn" : ""),
        cell(state.extra?.reason ?? state.lastError?.message ?? "", "dim"),
      ];
    }),
  );
  at("mempool").textContent = health.mempool_size ?? "unknown";
  plot("mempool", health.mempool_size, "Pending transactions");
}

function showPeers(peers) {
  const online = peers.filter(({ status }) => status.online).length;
  at("online").textContent = `${online} of ${peers.length}`;
  plot("peers", online, "Peers online");
  rows(
    at("peers"),
    peers.length === 0
      ? [[cell("The node knows nobody.")]]
      : peers.map((peer) => {
          const state = peer.status.ready ? "ready" : peer.status.online ? "online" : "offline";
          const identity =
            peer.identity === "" ? "unknown" : `${peer.identity.slice(0, 10)}…${peer.identity.slice(-4)}`;
          return [
            cell(peer.connection.string),
            cell(identity),
            cell(state, { ready: "good", online: "warn", offline: "bad" }[state]),
            cell(peer.sync.block ?? ""),
            cell(ago(peer.status.timestamp)),
            cell(peer.verification.message ?? "verified", "dim"),
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
        const li = document.createElement("li");
        const stamp = document.createElement("time");
        stamp.dateTime = new Date(time).toISOString();
        stamp.textContent = new Date(time).toLocaleTimeString();
        li.append(stamp, message);
        return li;
      }),
  );
}

function showHead(head) {
  at("head").textContent = head.number ?? "none yet";
  plot("head", head.number ?? null, "Newest block");
}

async function ask(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(5000) });
  return await response.json();
}

async function look() {
  try {
    const [health, peers, log, head] = await Promise.all(["health", "peerlist", "public_logs", "chain/head"].map(ask));
    showHealth(health);
    showPeers(peers);
    showLog(log);
    showHead(head);
    at("trouble").hidden = true;
  } catch (error) {
    at("trouble").textContent =
      `The node does not answer (${error.name}). What is below is from ${new Date(lastMs).toLocaleTimeString()}.`;
    at("trouble").hidden = false;
    return;
  } finally {
    setTimeout(look, document.hidden ? 5 * everyMs : everyMs);
  }
  lastMs = Date.now();
}

let lastMs = Date.now();
look();
