/** Streams that go on when their connection does not. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { EventService, WatchRequestSchema, WatchResponse } from "../../gen/gatehouse/event/v1/event_pb.js";
import type { HealthService, HealthSnapshot } from "../../gen/gatehouse/health/v1/health_pb.js";
import { isTransient, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";
import type { ClientLifecycle } from "./lifetime.js";
import { type RetryPolicy, sleep, waitAfter } from "./retry.js";

/** What a stream that goes on needs. */
export interface WatchDeps {
  readonly lifetime: ClientLifecycle;
  readonly retry: RetryPolicy;
}

/** Which events, and from where on; from what comes next, when left out. */
export type EventsRequest = Omit<MessageInitShape<typeof WatchRequestSchema>, "$typeName" | "$unknown">;

/**
 * Gives the states of a node's health, from the present one on, and connects again whenever the stream has ended. Closing
 * the client ends it without an error.
 */
export async function* watchHealth(
  health: Client<typeof HealthService>,
  deps: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<HealthSnapshot, undefined> {
  for await (const { snapshot } of goOn((signal) => health.watchHealth({}, { signal }), deps, caller)) {
    yield snapshot!;
  }
}

/**
 * Gives what happens on the chain, each thing once: a stream that was lost goes on after the last message that was given.
 * Closing the client ends it without an error.
 *
 * @throws GatehouseError INVALID_REQUEST; PRUNED where it goes on so late that what came next is not kept.
 */
export async function* watchEvents(
  events: Client<typeof EventService>,
  request: EventsRequest,
  deps: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<WatchResponse, undefined> {
  let from = request.from ?? "";
  for await (const message of goOn((signal) => events.watch({ ...request, from }, { signal }), deps, caller)) {
    from = message.cursor;
    yield message;
  }
}

/** Opens a stream again whenever it has ended. */
async function* goOn<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  { lifetime, retry }: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<T, undefined> {
  const { signal, end } = lifetime.begin(caller);
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
        // A connection that is lost in the middle of a stream is told of in many ways, none of which has a reason; that
        // the node does not know the stream has none, either.
        if (!isTransient(error) && (error.reason !== "UNSPECIFIED" || error.code === "Unimplemented")) {
          throw error;
        }
      }
      await sleep(waitAfter(Math.max(1, failures), retry, error?.retryAfterMs), signal);
    }
  } catch (thrown) {
    // Whoever closes the client has seen enough.
    if (thrown instanceof GatehouseError && thrown.reason === "CLOSED") {
      return;
    }
    throw thrown;
  } finally {
    end();
  }
}
