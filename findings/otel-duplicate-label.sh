#!/usr/bin/env bash
# The Prometheus exporter of OpenTelemetry writes one label twice if two attributes differ only in a dot.
#
# Version: @opentelemetry/exporter-prometheus 0.223.0, @opentelemetry/sdk-metrics 2.12.1.
# Behavior: attribute names become label names by replacing all but letters, digits and underscores. Names that are equal
#   then are not merged, as the OpenTelemetry specification demands (values joined by ";"). An undefined value becomes an
#   empty label, null the text "null".
# Seen: {"peer.id": "a", peer_id: "b"} is written as peer_id="a",peer_id="b".
# Why it matters: Prometheus rejects a sample with a repeated label, and with it the complete scrape: all metrics of the
#   process disappear when one library records the dotted name and another the one with underscore.
. "$(dirname "$0")/common.sh"

packages @opentelemetry/exporter-prometheus@0.223.0 @opentelemetry/sdk-metrics@2.12.1 @opentelemetry/api@1.9.1
program run.mjs <<'JS'
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";

const reader = new PrometheusExporter({ preventServerStart: true });
const meter = new MeterProvider({ readers: [reader] }).getMeter("finding");
const blocks = meter.createCounter("blocks");
blocks.add(1, { "peer.id": "a", peer_id: "b" });
blocks.add(1, { peer: undefined, kind: null });
const { resourceMetrics } = await reader.collect();
const lines = new PrometheusSerializer().serialize(resourceMetrics).split("\n");
console.log(lines.filter((line) => line.startsWith("blocks")).join("\n"));
JS
shows node run.mjs <<'SEEN'
blocks_total{peer_id="a",peer_id="b",otel_scope_name="finding"} 1
blocks_total{peer="",kind="null",otel_scope_name="finding"} 1
SEEN
