/** Plots of /status: the history that the node records, and the current values as the last point. */
import { byId, draw, h } from "../explore/dom.ts";
import { changeLine, duration, timeByStatus } from "./words.js";

/** CSS class of each status of the node, a subsystem or a boot step. */
export const statusClass = {
  ok: "good",
  ready: "good",
  degraded: "warn",
  dormant: "warn",
  running: "warn",
  pending: "warn",
  failing: "bad",
  failed: "bad",
};

/** Plots with their functions: `values` computes all values, `change` compares them. */
const plots = [
  {
    name: "block",
    label: "Blocks a minute",
    values: blocksPerMinute,
    change: (points, span) => {
      const known = points.filter(({ block }) => block !== null);
      return known.length < 2
        ? "Nothing to compare with yet."
        : `${known.at(-1).block - known[0].block} new blocks in ${span}.`;
    },
  },
  { name: "behind", label: "Blocks behind peers" },
  { name: "pending", label: "Pending transactions" },
  { name: "online", label: "Verified peers online" },
].map((plot) => ({
  values: (points) => points.map((point) => point[plot.name]),
  change: (points, span) =>
    changeLine(
      points.map((point) => point[plot.name]),
      span,
    ),
  ...plot,
}));

/** Computes rates from block numbers. The first point has no rate. The minute in progress has that of the last two. */
function blocksPerMinute(points) {
  return points.map(({ atMs, block }, i) => {
    const before = points[i > 1 && i === points.length - 1 ? i - 2 : i - 1];
    if (before === undefined || block === null || before.block === null) return null;
    const minutes = Math.max((atMs - before.atMs) / 60_000, 1);
    return Math.round((10 * (block - before.block)) / minutes) / 10;
  });
}

/** Creates the figures of all plots. Called once. */
export function createPlots() {
  for (const { name, label } of plots) {
    const svg = draw("svg", {
      ...{ id: `plot-${name}`, viewBox: "0 0 300 80", preserveAspectRatio: "none", role: "img", "aria-label": label },
    });
    const scale = h("div", { class: "scale" }, h("span", { class: "most" }), h("span", {}, "0"));
    const times = h("div", { class: "axis" }, h("span", { class: "begin" }), h("span", {}, "now"));
    const caption = h("figcaption", {}, `${label} `, h("span", { class: "now", id: `now-${name}` }));
    const change = h("p", { class: "change dim", id: `change-${name}` });
    byId("plots").append(h("figure", {}, caption, h("div", { class: "plot" }, scale, svg, times), change));
  }
}

/** Returns the x coordinate of each point, and whether it follows a gap, in which the node did not run. */
function positionsOf(points, everyMs) {
  const [first, last] = [points[0].atMs, points.at(-1).atMs];
  const span = Math.max(last - first, 1);
  return points.map(({ atMs }, i) => ({
    x: points.length === 1 ? 0 : (300 * (atMs - first)) / span,
    isAfterGap: i > 0 && atMs - points[i - 1].atMs > 2.5 * everyMs,
  }));
}

/** Draws lines between consecutive points. A single point is drawn as a dot. */
function linesOf(values, positions, max) {
  const lines = [];
  let line;
  values.forEach((value, i) => {
    const { x, isAfterGap } = positions[i];
    if (value === null || isAfterGap) line = undefined;
    if (value === null) return;
    if (line === undefined) lines.push((line = []));
    line.push(`${x.toFixed(1)},${(77 - (74 * value) / max).toFixed(1)}`);
  });
  return lines.map((points) => draw("polyline", { points: [...points, points.at(-1)].join(" ") }));
}

export function showPlots(points, everyMs) {
  const span = duration((points.at(-1).atMs - points[0].atMs) / 1000);
  const positions = positionsOf(points, everyMs);
  byId("range").textContent =
    `The last ${span}, one point a minute. The history starts with the node and has at most 24 h.`;
  for (const begin of document.querySelectorAll(".begin")) begin.textContent = `${span} ago`;
  for (const { name, label, values, change } of plots) {
    const column = values(points);
    const max = Math.ceil(Math.max(1, ...column.filter((value) => value !== null)));
    const svg = byId(`plot-${name}`);
    svg.replaceChildren(...linesOf(column, positions, max));
    svg.parentElement.querySelector(".most").textContent = max;
    const now = byId(`now-${name}`);
    now.textContent = column.at(-1) ?? "–";
    now.title = column.at(-1) === null ? "The node has no value yet." : "";
    byId(`change-${name}`).textContent = change(points, span);
    svg.setAttribute("aria-label", `${label}, 0 to ${max}, in the last ${span}`);
  }
  showStatuses(points, positions);
}

/** Merges adjacent spans of the same status, so that no gaps are visible between them. */
function mergeSpans(spans) {
  const merged = [];
  for (const { status, x, end } of spans) {
    const last = merged.at(-1);
    if (last !== undefined && last.status === status && last.end === x) last.end = end;
    else merged.push({ status, x, end });
  }
  return merged;
}

/** Shows the status over time. A status lasts until the next point. */
function showStatuses(points, positions) {
  const spans = points.slice(0, -1).flatMap(({ atMs, status }, i) => {
    const [x, next] = [positions[i].x, positions[i + 1]];
    return next.isAfterGap ? [] : [{ status, ms: points[i + 1].atMs - atMs, x, end: next.x }];
  });
  const svg = byId("plot-status");
  svg.replaceChildren(
    ...mergeSpans(spans).map(({ status, x, end }) =>
      draw("rect", { class: statusClass[status] ?? "dim", x, width: end - x, y: 0, height: 20 }),
    ),
  );
  byId("now-status").textContent = points.at(-1).status;
  byId("change-status").textContent = spans.length === 0 ? "Nothing to compare with yet." : `${timeByStatus(spans)}.`;
  svg.setAttribute("aria-label", `Status: ${byId("change-status").textContent}`);
}
