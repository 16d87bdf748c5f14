/** Streams that reconnect after a lost connection. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { EventService, WatchRequestSchema, WatchResponse } from "../../gen/gatehouse/event/v1/event_pb.js";
import type { HealthService, HealthSnapshot } from "../../gen/gatehouse/health/v1/health_pb.js";
import { isTransient, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";
import type { ClientLifecycle } from "./lifetime.js";
import { type RetryPolicy, sleep, waitAfter } from "./retry.js";

export interface WatchDeps {
  readonly lifetime: ClientLifecycle;
  readonly retry: RetryPolicy;
}

/** Filter and start of the events. Default start: the next event. */
export type EventsRequest = Omit<MessageInitShape<typeof WatchRequestSchema>, "$typeName" | "$unknown">;

/**
 * Yields the health of a node, starting with the current state. Reconnects when the stream ends. Ends without an error
 * when the client is closed.
 */
export async function* watchHealth(
  health: Client<typeof HealthService>,
  deps: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<HealthSnapshot, undefined> {
  for await (const { snapshot } of reconnecting((signal) => health.watchHealth({}, { signal }), deps, caller)) {
    yield snapshot!;
  }
}

/**
 * Yields each event of the chain once. Reconnects when the stream ends and resumes after the last event. Ends without
 * an error when the client is closed.
 *
 * @throws GatehouseError INVALID_REQUEST; PRUNED if it resumes so late that the next event is no longer stored.
 */
export async function* watchEvents(
  events: Client<typeof EventService>,
  request: EventsRequest,
  deps: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<WatchResponse, undefined> {
  let from = request.from ?? "";
  for await (const message of reconnecting((signal) => events.watch({ ...request, from }, { signal }), deps, caller)) {
    from = message.cursor;
    yield message;
  }
}

/** Opens a stream again whenever it ends. */
async function* reconnecting<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  { lifetime, retry }: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<T, undefined> {
  const { signal, end } = lifetime.start(caller);
  try {
    for (let failures = 1; ; failures++) {
      let error: GatehouseError | undefined;
      try {
        for await (const message of open(signal)) {
          failures = 0;
          yield message;
        }
      } catch (thrown) {
        signal.throwIfAborted();
        error = toGatehouseError(thrown);
        // A connection lost in the middle of a stream causes various errors, all without a reason. The error of a node
        // that does not know the rpc has no reason either, so check its code.
        if (!isTransient(error) && (error.reason !== "UNSPECIFIED" || error.code === "Unimplemented")) {
          throw error;
        }
      }
      await sleep(waitAfter(Math.max(1, failures), retry, error?.retryAfterMs), signal);
    }
  } catch (thrown) {
    // Closing the client ends the stream without an error.
    if (thrown instanceof GatehouseError && thrown.reason === "CLOSED") {
      return;
    }
    throw thrown;
  } finally {
    end();
  }
}
