"use strict";
/** Plots of the node's own history, which end with what it is now. */

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

/** Each is a column of the points, or made of them. */
const plots = [
  {
    name: "block",
    label: "Blocks a minute",
    now: ({ block }) => (block === null ? "none yet" : `block ${block}`),
    values: blocksPerMinute,
    change: (points, took) => {
      const known = points.filter(({ block }) => block !== null);
      return known.length < 2
        ? "Nothing to compare with yet."
        : `${known.at(-1).block - known[0].block} new blocks in ${took}.`;
    },
  },
  { name: "behind", label: "Blocks behind peers" },
  { name: "pending", label: "Pending transactions" },
  { name: "online", label: "Verified peers online" },
].map((plot) => ({
  now: (point) => point[plot.name] ?? "unknown",
  values: (points) => points.map((point) => point[plot.name]),
  change: (points, took) =>
    changeLine(
      points.map((point) => point[plot.name]),
      took,
    ),
  ...plot,
}));

/** The first point has nothing before it; a minute that is not over has fewer. */
function blocksPerMinute(points) {
  return points.map(({ atMs, block }, i) => {
    const before = points[i - 1];
    if (before === undefined || block === null || before.block === null) return null;
    const minutes = Math.max((atMs - before.atMs) / 60_000, 1);
    return Math.round((10 * (block - before.block)) / minutes) / 10;
  });
}

function draw(kind, attributes) {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
  return shape;
}

function element(kind, className, ...children) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Their figures, once. */
function layPlots() {
  for (const { name, label } of plots) {
    const now = element("span", "now");
    now.id = `now-${name}`;
    const svg = draw("svg", { id: `plot-${name}`, viewBox: "0 0 300 80", preserveAspectRatio: "none", role: "img" });
    svg.setAttribute("aria-label", label);
    const scale = element("div", "scale", element("span", "most"), element("span", "", "0"));
    const times = element("div", "times", element("span", "begin"), element("span", "", "now"));
    const change = element("p", "change dim");
    change.id = `change-${name}`;
    const caption = element("figcaption", "", `${label} `, now);
    at("plots").append(element("figure", "", caption, element("div", "plot", scale, svg, times), change));
  }
}

/** Where in the width each point is, and where the node was not there: it was stopped, or its machine asleep. */
function placesOf(points, everyMs) {
  const [first, last] = [points[0].atMs, points.at(-1).atMs];
  const span = Math.max(last - first, 1);
  return points.map(({ atMs }, i) => ({
    x: points.length === 1 ? 0 : (300 * (atMs - first)) / span,
    isAfterGap: i > 0 && atMs - points[i - 1].atMs > 2.5 * everyMs,
  }));
}

/** Lines between points that follow each other; one by itself is a dot. */
function linesOf(values, places, most) {
  const lines = [];
  let line;
  values.forEach((value, i) => {
    const { x, isAfterGap } = places[i];
    if (value === null || isAfterGap) line = undefined;
    if (value === null) return;
    if (line === undefined) lines.push((line = []));
    line.push(`${x.toFixed(1)},${(77 - (74 * value) / most).toFixed(1)}`);
  });
  return lines.map((points) => draw("polyline", { points: [...points, points.at(-1)].join(" ") }));
}

function showPlots(points, everyMs) {
  const took = duration((points.at(-1).atMs - points[0].atMs) / 1000);
  const places = placesOf(points, everyMs);
  at("range").textContent = `The last ${took}, a point a minute: since the node started, at most 24 h.`;
  for (const begin of document.querySelectorAll(".begin")) begin.textContent = `${took} ago`;
  for (const { name, label, now, values, change } of plots) {
    const column = values(points);
    const most = Math.max(1, ...column.filter((value) => value !== null));
    const svg = at(`plot-${name}`);
    svg.replaceChildren(...linesOf(column, places, most));
    svg.parentElement.querySelector(".most").textContent = most;
    at(`now-${name}`).textContent = now(points.at(-1));
    at(`change-${name}`).textContent = change(points, took);
    svg.setAttribute("aria-label", `${label}, 0 to ${most}, in the last ${took}`);
  }
  showStatuses(points, places);
}

/** Spans of one status that follow each other as one, so that no seams are seen. */
function joined(spans) {
  const runs = [];
  for (const { status, x, end } of spans) {
    const last = runs.at(-1);
    if (last !== undefined && last.status === status && last.end === x) last.end = end;
    else runs.push({ status, x, end });
  }
  return runs;
}

/** A status holds until the next point. */
function showStatuses(points, places) {
  const spans = points.slice(0, -1).flatMap(({ atMs, status }, i) => {
    const [x, next] = [places[i].x, places[i + 1]];
    return next.isAfterGap ? [] : [{ status, ms: points[i + 1].atMs - atMs, x, end: next.x }];
  });
  const svg = at("plot-status");
  svg.replaceChildren(
    ...joined(spans).map(({ status, x, end }) =>
      draw("rect", { class: statusClass[status] ?? "dim", x, width: end - x, y: 0, height: 20 }),
    ),
  );
  at("now-status").textContent = points.at(-1).status;
  at("change-status").textContent = spans.length === 0 ? "Nothing to compare with yet." : `${shares(spans)}.`;
  svg.setAttribute("aria-label", `Status: ${at("change-status").textContent}`);
}
