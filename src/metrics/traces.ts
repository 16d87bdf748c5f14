/**
 * Requests as OpenTelemetry spans, sent over OTLP: one for each request, a child of the caller's where it tells of one
 * (W3C trace context). Loaded only where an endpoint is configured.
 */
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, type TextMapGetter } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { SettledRequest } from "./settled-request.js";

export interface TracedRequest extends SettledRequest {
  readonly requestId: string;
  /** A request header by lower-case name. */
  header(name: string): string | undefined;
}

export interface Traces {
  /** Takes a request that was answered just now. */
  record(request: TracedRequest): void;
  /** Sends what is left. */
  stop(): Promise<void>;
}

export interface TracesDeps {
  /** Base URL of the collector; spans go to /v1/traces below it. */
  readonly endpoint: string;
  readonly version: string;
  /** The node's public key, which names the instance. */
  readonly publicKey: string;
}

/** How long the collector may take, so that a node that stops does not wait for one that hangs. */
const exportWithinMs = 3_000;

const headers: TextMapGetter<TracedRequest> = {
  keys: () => ["traceparent", "tracestate"],
  get: (request, name) => request.header(name),
};

export function createTraces({ endpoint, version, publicKey }: TracesDeps): Traces {
  const exporter = new OTLPTraceExporter({ url: new URL("/v1/traces", endpoint).href, timeoutMillis: exportWithinMs });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      "service.name": "gatehouse",
      "service.version": version,
      "service.instance.id": publicKey,
    }),
    spanProcessors: [
      new BatchSpanProcessor(exporter, { scheduledDelayMillis: 1_000, exportTimeoutMillis: exportWithinMs }),
    ],
  });
  const tracer = provider.getTracer("gatehouse", version);
  const propagator = new W3CTraceContextPropagator();

  return {
    record(request) {
      const { protocol, rpc, code, latencyMs, requestId } = request;
      const endMs = Date.now();
      const span = tracer.startSpan(
        rpc ?? protocol,
        {
          kind: SpanKind.SERVER,
          startTime: endMs - latencyMs,
          attributes: {
            "gatehouse.protocol": protocol,
            "gatehouse.code": code,
            "gatehouse.request_id": requestId,
            ...rpcAttributes(rpc),
          },
        },
        propagator.extract(ROOT_CONTEXT, request, headers),
      );
      if (code === "INTERNAL_ERROR") {
        span.setStatus({ code: SpanStatusCode.ERROR, message: code });
      }
      span.end(endMs);
    },
    stop: () => provider.shutdown().catch(() => undefined),
  };
}

function rpcAttributes(rpc: string | undefined): Attributes {
  const [service, method] = rpc?.split("/") ?? [];
  return service === undefined || method === undefined ? {} : { "rpc.service": service, "rpc.method": method };
}
