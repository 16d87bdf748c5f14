/**
 * Exports requests as OpenTelemetry spans over OTLP, one span for each request. If the client sent a W3C trace context,
 * the span is a child of its span. Loaded only if an endpoint is configured.
 */
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, type TextMapGetter } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { MeasuredRequest } from "./row.js";

type TraceHeader = "traceparent" | "tracestate";

export interface TracedRequest extends MeasuredRequest {
  readonly requestId: string;
  header(name: TraceHeader): string | undefined;
}

export type Traces = ReturnType<typeof createTraces>;

/** Time limit for an export, so that a hung collector does not block the shutdown. */
const exportWithinMs = 3_000;

const headers: TextMapGetter<TracedRequest> = {
  keys: () => ["traceparent", "tracestate"],
  get: (request, name) => request.header(name as TraceHeader),
};

/**
 * Starts the export.
 *
 * @param endpoint base URL of the collector; spans go to /v1/traces.
 * @param publicKey public key of the node, used as the instance ID of the service.
 */
export function createTraces(endpoint: string, version: string, publicKey: string) {
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
    /** Records a request that has just finished. */
    record(request: TracedRequest) {
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
