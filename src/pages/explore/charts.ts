/** Charts of the network's activity. Readers reach each value by pointer, by arrow keys, and in a table. */
import uPlot from "uplot";
import { button, h, setText } from "./dom.js";
import { isolatedPoints, type Series, type SeriesName, seriesOf, type StatusHistory } from "./history-series.js";
import type { Http } from "./http.js";
import { note, table } from "./parts.js";

const refreshEveryMs = 60_000;
const [hourMs, minuteMs] = [3_600_000, 60_000];
const spans = [
  { name: "Last hour", spanMs: hourMs, stepMs: minuteMs },
  { name: "Last day", spanMs: 24 * hourMs, stepMs: 10 * minuteMs },
] as const;
type Span = (typeof spans)[number];

const oneDecimal = (value: number): string => String(Math.round(10 * value) / 10);
const whole = (value: number): string => String(Math.round(value));
const charts: readonly {
  readonly name: SeriesName;
  readonly label: string;
  readonly format: (value: number) => string;
}[] = [
  { name: "transactions", label: "Transactions a minute", format: oneDecimal },
  { name: "blocks", label: "Blocks a minute", format: oneDecimal },
  { name: "blockTime", label: "Seconds between blocks", format: (value) => `${oneDecimal(value)} s` },
  { name: "pending", label: "Pending transactions", format: whole },
  { name: "commitments", label: "Commitments", format: whole },
  { name: "online", label: "Peers online", format: whole },
];

const noValuesYet = "The node counts each minute since it started: the first values come soon.";

/** Returns the charts, which load new values each minute until the signal aborts. */
export function activityCharts(node: Http, signal: AbortSignal): HTMLElement {
  let span: Span = spans[0];
  let history: StatusHistory | undefined;
  const created = charts.map(({ label, format }) => createChart(label, format, signal));
  const state = note("…");
  const buttons = spans.map((choice) => {
    const press = button(choice.name, { "aria-pressed": String(choice === span) }, () => {
      span = choice;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === press)));
      show();
    });
    return press;
  });

  function show(): void {
    if (history === undefined) {
      return;
    }
    const { length } = history.atMs;
    setText(state, length < 2 ? noValuesYet : "One point a minute, since the node started.");
    charts.forEach(({ name }, i) => created[i]!.show(seriesOf(history!, name, span.spanMs, span.stepMs), span));
  }
  async function refresh(): Promise<void> {
    if (!document.hidden) {
      await node.fetchJson<StatusHistory>("status/data", signal).then(
        (response) => {
          history = response;
          show();
        },
        () => signal.aborted || setText(state, "The node does not report its history."),
      );
    }
    if (!signal.aborted) {
      setTimeout(() => void refresh(), refreshEveryMs);
    }
  }
  void refresh();
  return h(
    "div",
    {},
    h("p", { class: "buttons", role: "group", "aria-label": "Time" }, ...buttons),
    state,
    h("div", { class: "charts" }, ...created.map(({ element }) => element)),
  );
}

interface Chart {
  readonly element: HTMLElement;
  show(series: Series, span: Span): void;
}

function createChart(label: string, format: (value: number) => string, signal: AbortSignal): Chart {
  const now = h("span", { class: "now" });
  const plotArea = h("div", { class: "plot", tabindex: 0, role: "img" });
  const rows = table(label, ["Time", label]);
  rows.element.tabIndex = 0;
  const details = h("details", {}, h("summary", {}, "Table"), rows.element);
  const caption = h("figcaption", {}, h("span", {}, label), " ", now);
  const element = h("figure", { class: "chart" }, caption, plotArea, details);
  let shown: Series = { times: [], values: [] };
  let plot: uPlot | undefined;

  const valueOf = (index: number): string => {
    const value = shown.values[index];
    return value === null || value === undefined ? "unknown" : format(value);
  };
  const lastKnown = (): number => shown.values.findLastIndex((value) => value !== null);
  /** Shows the value at a point and its time, or the last known value. */
  function showValue(index: number | null | undefined): void {
    const last = lastKnown();
    const isPast = index !== null && index !== undefined && index !== last && index < shown.times.length;
    setText(now, isPast ? `${valueOf(index)} at ${clock(shown.times[index]!)}` : last < 0 ? "–" : valueOf(last));
    now.title = last < 0 ? noValuesYet : "";
  }
  function fillTable(): void {
    if (details.open) {
      rows.body.replaceChildren();
      rows.add(shown.times.map((seconds, i) => [clock(seconds), valueOf(i)]).reverse());
    }
  }

  plotArea.addEventListener("keydown", (event) => {
    const { length } = shown.times;
    const from = plot?.cursor.idx ?? lastKnown();
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: length - 1 }[event.key];
    if (to !== undefined && plot !== undefined && length > 0) {
      event.preventDefault();
      const index = Math.min(Math.max(to, 0), length - 1);
      plot.setCursor({ left: plot.valToPos(shown.times[index]!, "x"), top: 0 });
      // Screen readers announce the values that arrow keys select, but not those under the pointer.
      now.setAttribute("aria-live", "polite");
    }
  });
  plotArea.addEventListener("blur", () => {
    now.removeAttribute("aria-live");
    plot?.setCursor({ left: -10, top: -10 });
  });
  details.addEventListener("toggle", fillTable);
  const resizeObserver = new ResizeObserver(() => plot?.setSize(sizeIn(plotArea)));
  resizeObserver.observe(plotArea);
  const redraw = (): void => plot?.redraw(false);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw, { signal });
  document.addEventListener("change", redraw, { signal });
  signal.addEventListener("abort", () => {
    resizeObserver.disconnect();
    plot?.destroy();
  });

  return {
    element,
    show(series, span) {
      shown = series;
      const known = series.values.filter((value) => value !== null);
      const range =
        known.length === 0 ? "no values yet" : `${format(Math.min(...known))} to ${format(Math.max(...known))}`;
      plotArea.setAttribute(
        "aria-label",
        `${label}, ${span.name.toLowerCase()}: ${range}. Arrow keys read single values.`,
      );
      const data: uPlot.AlignedData = [[...series.times], [...series.values]];
      plot ??= new uPlot(optionsOf(format, showValue, sizeIn(plotArea)), data, plotArea);
      plot.setData(data, false);
      const endS = series.times.at(-1) ?? Date.now() / 1000;
      plot.setScale("x", { min: endS - span.spanMs / 1000, max: endS });
      showValue(plot.cursor.idx);
      fillTable();
    },
  };
}

function sizeIn(area: HTMLElement): { width: number; height: number } {
  return { width: Math.max(area.clientWidth, 100), height: 130 };
}

/** Steps between the values on an axis. All are whole, since the charts count blocks, transactions, peers and seconds. */
const wholeSteps = Array.from({ length: 12 }, (_, i) => 10 ** i).flatMap((power) => [power, 2 * power, 5 * power]);

/** Returns a function that reads a color of the current theme from its CSS variable. */
const color = (name: string) => (): string => getComputedStyle(document.documentElement).getPropertyValue(name);

function optionsOf(
  format: (value: number) => string,
  onPoint: (index: number | null | undefined) => void,
  size: { width: number; height: number },
): uPlot.Options {
  const axis = {
    stroke: color("--dim"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  return {
    ...size,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
    axes: [
      { ...axis, size: 24, space: 60, values: (_plot, splits) => splits.map(clock) },
      { ...axis, size: 52, space: 30, incrs: wholeSteps, values: (_plot, splits) => splits.map(format) },
    ],
    series: [
      {},
      { stroke: color("--accent"), width: 2, points: { size: 4, filter: ({ data }) => isolatedPoints(data[1]!) } },
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx)] },
  };
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}
