/** Series that fire each alert of deploy/, and similar ones that do not, for `promtool test rules`. */

/** Input series, with values for each half minute in the notation of Prometheus. */
type Scraped = Readonly<Record<string, string>>;

/** A firing and a quiet case. */
export interface AlertExample {
  readonly fires: Scraped;
  /** The closest case that must not fire. */
  readonly silent: Scraped;
  /** Minutes until the alert fires; by default `for` and half a minute. */
  readonly atMin?: number;
  /** Labels of the alert besides its severity; by default those of every series. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The text for `{{ $value }}`. */
  readonly value?: string;
}

/** Default labels of a series. */
const scrapedLabels = { instance: "node:53590", job: "gatehouse" } as const;

const instanceOnly = { instance: scrapedLabels.instance };

/** Returns a constant value for an hour. */
const always = (value: number): string => `${value}x120`;
/** Returns a repeated value, because the notation repeats only numbers. */
const unknown = "NaN ".repeat(121);
const rising = (step: number): string => `0+${step}x120`;

/** The cases, by alert. */
export const alertExamples: Readonly<Record<string, AlertExample>> = {
  GatehouseDown: {
    fires: { up: always(1), 'gatehouse_info{job="gatehouse",instance="another"}': always(1) },
    silent: { up: always(1), gatehouse_info: always(1) },
  },
  GatehouseAbsent: {
    fires: { 'up{job="another"}': always(1) },
    silent: { up: always(0) },
    labels: { job: "gatehouse" },
  },
  GatehouseFailing: {
    fires: { 'gatehouse_health_status{status="failing"}': always(1) },
    silent: {
      'gatehouse_health_status{status="failing"}': always(0),
      'gatehouse_health_status{status="degraded"}': always(1),
    },
    labels: { ...scrapedLabels, status: "failing" },
  },
  GatehouseDamaged: {
    fires: { gatehouse_verify_findings: always(2) },
    silent: { gatehouse_verify_findings: always(0) },
    value: "2",
  },
  GatehouseDegraded: {
    fires: { 'gatehouse_health_status{status="degraded"}': always(1) },
    silent: {
      'gatehouse_health_status{status="degraded"}': always(0),
      'gatehouse_health_status{status="failing"}': always(1),
    },
    labels: { ...scrapedLabels, status: "degraded" },
  },
  GatehouseRestarting: {
    fires: { process_start_time_seconds: "1x10 2x10 3x10 4x90" },
    silent: { process_start_time_seconds: "1x20 2x20 3x80" },
    atMin: 25,
    value: "3",
  },
  GatehouseWorkersDying: {
    fires: { gatehouse_worker_restarts_total: "0x10 1x10 2x10 3x90" },
    silent: { gatehouse_worker_restarts_total: "0x20 1x20 2x80" },
    atMin: 25,
    value: "3",
  },
  GatehouseDormant: {
    fires: { gatehouse_dormant: always(1), gatehouse_accepting: always(0) },
    silent: { gatehouse_dormant: always(1), gatehouse_accepting: always(1) },
  },
  GatehouseNotAccepting: {
    fires: { gatehouse_accepting: always(0), gatehouse_dormant: always(0) },
    silent: { gatehouse_accepting: always(0), gatehouse_dormant: always(1) },
  },
  GatehouseBehind: {
    fires: { gatehouse_blocks_behind: always(11) },
    silent: { gatehouse_blocks_behind: always(10) },
    value: "11",
  },
  GatehouseChainStalled: {
    fires: { gatehouse_mempool_size: always(7), gatehouse_block_number: always(5) },
    silent: { gatehouse_mempool_size: always(7), gatehouse_block_number: rising(0.1) },
    value: "7",
  },
  GatehouseAlone: {
    fires: { 'gatehouse_peers{state="online"}': always(0), gatehouse_dormant: always(0) },
    silent: { 'gatehouse_peers{state="online"}': always(0), gatehouse_dormant: always(1) },
    labels: { ...scrapedLabels, state: "online" },
  },
  GatehouseMainLoopStalled: {
    fires: { gatehouse_main_loop_heartbeat_age_seconds: always(31), gatehouse_main_loop_exited: always(0) },
    silent: { gatehouse_main_loop_heartbeat_age_seconds: unknown, gatehouse_main_loop_exited: always(0) },
  },
  // These tests start at time 0.
  GatehouseCertificateEndsSoon: {
    fires: { 'gatehouse_certificate_not_after_timestamp_seconds{subsystem="rpc"}': always(14 * 86_400) },
    silent: {
      'gatehouse_certificate_not_after_timestamp_seconds{subsystem="rpc"}': always(14 * 86_400 + 660),
      // Another alert covers this.
      'gatehouse_certificate_not_after_timestamp_seconds{subsystem="mcp"}': always(86_400 + 659),
    },
    atMin: 11,
    labels: { ...scrapedLabels, subsystem: "rpc" },
    value: "13d 23h 49m 0s",
  },
  GatehouseCertificateEnds: {
    // The condition ends ten seconds before the alert would fire.
    fires: { 'gatehouse_certificate_not_after_timestamp_seconds{subsystem="rpc"}': always(80) },
    silent: {
      'gatehouse_certificate_not_after_timestamp_seconds{subsystem="rpc"}': always(86_400 + 90),
      'gatehouse_certificate_not_after_timestamp_seconds{subsystem="mcp"}': unknown,
    },
    labels: { ...scrapedLabels, subsystem: "rpc" },
  },
  GatehouseMempoolNearlyFull: {
    fires: { gatehouse_mempool_size: always(63), gatehouse_mempool_bytes: always(66_060_288) },
    silent: { gatehouse_mempool_size: always(9000), gatehouse_mempool_bytes: unknown },
  },
  GatehouseInternalErrors: {
    fires: { 'gatehouse_requests_total{code="INTERNAL_ERROR",rpc="a.B/C"}': "0x10 1x110" },
    silent: { 'gatehouse_requests_total{code="NOT_FOUND",rpc="a.B/C"}': rising(1) },
    atMin: 6,
    labels: { ...instanceOnly, rpc: "a.B/C" },
  },
  GatehouseUncaught: {
    fires: {
      gatehouse_uncaught_exceptions_total: "0x10 1x110",
      gatehouse_unhandled_rejections_total: always(0),
    },
    silent: { gatehouse_uncaught_exceptions_total: always(1), gatehouse_unhandled_rejections_total: always(3) },
    atMin: 6,
  },
  GatehouseLogLost: {
    fires: { gatehouse_log_lines_lost_total: "0x10 9x110" },
    silent: { gatehouse_log_lines_lost_total: always(9) },
    atMin: 6,
  },
  GatehouseOverloaded: {
    fires: { 'gatehouse_requests_total{code="OVERLOADED"}': rising(60) },
    silent: { 'gatehouse_requests_total{code="RATE_LIMITED"}': rising(60) },
    atMin: 20,
    labels: instanceOnly,
    value: "2",
  },
  GatehouseSlow: {
    fires: {
      'gatehouse_request_duration_seconds_bucket{le="0.5"}': rising(98),
      'gatehouse_request_duration_seconds_bucket{le="1"}': rising(100),
      'gatehouse_request_duration_seconds_bucket{le="+Inf"}': rising(100),
    },
    silent: {
      'gatehouse_request_duration_seconds_bucket{le="0.5"}': rising(100),
      'gatehouse_request_duration_seconds_bucket{le="1"}': rising(100),
      'gatehouse_request_duration_seconds_bucket{le="+Inf"}': rising(100),
    },
    atMin: 20,
    labels: instanceOnly,
  },
  GatehouseEventLoopLag: {
    fires: { nodejs_eventloop_lag_p99_seconds: always(0.3) },
    silent: { nodejs_eventloop_lag_p99_seconds: always(0.25) },
  },
};

/** The relevant fields of a rule. */
interface Rule {
  readonly alert: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Returns both cases of an alert for `promtool test rules`. */
export function unitTestsOf(rule: Rule, { fires, silent, atMin, labels = scrapedLabels, value = "" }: AlertExample) {
  const heldMin = Number.parseInt(rule.for ?? "0", 10);
  const told = {
    exp_labels: { ...labels, ...rule.labels },
    exp_annotations: Object.fromEntries(
      Object.entries(rule.annotations).map(([name, text]) => [name, render(text, labels, value)]),
    ),
  };
  const evaluate = (minutes: number, alerts: readonly object[]) => ({
    eval_time: `${minutes * 60}s`,
    alertname: rule.alert,
    exp_alerts: alerts,
  });
  const early = atMin === undefined && heldMin > 0 ? [evaluate(heldMin - 0.5, [])] : [];
  const due = atMin ?? heldMin + 0.5;
  return [
    { ...inputOf(fires), alert_rule_test: [...early, evaluate(due, [told])] },
    { ...inputOf(silent), alert_rule_test: [evaluate(due, [])] },
  ];
}

function inputOf(scraped: Scraped) {
  return {
    interval: "30s",
    input_series: Object.entries(scraped).map(([name, values]) => ({ series: withLabels(name), values })),
  };
}

function withLabels(name: string): string {
  const [, metric = "", own = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? [];
  const added = Object.entries(scrapedLabels).filter(([label]) => !own.includes(`${label}=`));
  return `${metric}{${[own, ...added.map(([label, value]) => `${label}="${value}"`)].filter(Boolean).join()}}`;
}

/** Expands an annotation like Prometheus. */
function render(text: string, labels: Readonly<Record<string, string>>, value: string): string {
  return text
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? "")
    .replaceAll(/\{\{ \$value( \| \w+)? \}\}/g, value);
}
