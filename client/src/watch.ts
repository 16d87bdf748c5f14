/** Streams that go on when their connection does not. */
import type { Client } from "@connectrpc/connect";
import type { HealthService, HealthSnapshot } from "../../gen/gatehouse/health/v1/health_pb.js";
import { isTransient, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";
import type { Lifetime } from "./lifetime.js";
import { type RetryPolicy, sleep, waitAfter } from "./retry.js";

/** What it is made of. */
export interface WatchDeps {
  readonly health: Client<typeof HealthService>;
  readonly lifetime: Lifetime;
  readonly retry: RetryPolicy;
}

/**
 * Gives the states of a node's health, from the present one on, and connects again whenever the stream has ended. Closing
 * the client ends it without an error.
 */
export async function* watchHealth(
  { health, lifetime, retry }: WatchDeps,
  caller: AbortSignal | undefined,
): AsyncGenerator<HealthSnapshot, undefined> {
  const { signal, end } = lifetime.begin(caller);
  try {
    for (let failures = 1; ; failures++) {
      let error: GatehouseError | undefined;
      try {
        for await (const { snapshot } of health.watchHealth({}, { signal })) {
          failures = 0;
          yield snapshot!;
        }
      } catch (thrown) {
        signal.throwIfAborted();
        error = toGatehouseError(thrown);
        // A connection that is lost in the middle of a stream is told of in many ways, none of which has a reason.
        if (!isTransient(error) && error.reason !== "UNSPECIFIED") {
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
