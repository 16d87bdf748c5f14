/**
 * Adds retries, identity, the lifetime of the client and its single error class between the typed services and the
 * transport.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { toGatehouseError } from "./errors.js";
import type { IdentityHeaders } from "./identity.js";
import type { ClientLifecycle } from "./lifetime.js";
import { maxTimerMs, withRetry, type RetryPolicy } from "./retry.js";

export interface CallsDeps {
  readonly transport: Transport;
  readonly lifetime: ClientLifecycle;
  readonly retry: RetryPolicy;
  /** Default time limit in milliseconds of a call with all of its retries; 0 for no limit. Streams have none. */
  readonly timeoutMs: number;
  /** Returns the headers that prove the caller's identity; left out for an anonymous client. */
  readonly identity?: (() => Promise<IdentityHeaders>) | undefined;
}

/**
 * Returns true if a call may be repeated without a side effect. A transaction counts once, however often it is sent.
 */
function mayRetry(method: DescMethod): boolean {
  return (
    method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ||
    method === (ChainService.method.submitTransaction as DescMethod)
  );
}

/** Creates a transport with these additions. */
export function createCalls({ transport, lifetime, retry, timeoutMs, identity }: CallsDeps): Transport {
  async function headersOf(callHeaders: HeadersInit | undefined): Promise<Headers> {
    const headers = new Headers(callHeaders);
    if (identity !== undefined) {
      for (const [name, value] of Object.entries(await identity())) {
        headers.set(name, value);
      }
    }
    return headers;
  }

  return {
    async unary(method, signal, callTimeoutMs = timeoutMs, header, input, contextValues) {
      return await lifetime.run(signal, async (callSignal) => {
        const attempt = async (leftMs: number | undefined) =>
          await transport.unary(
            method,
            callSignal,
            limitTimeout(leftMs),
            await headersOf(header),
            input,
            contextValues,
          );
        return await withRetry(attempt, {
          retry: mayRetry(method) ? retry : { ...retry, attempts: 1 },
          // In Connect, 0 means no limit.
          timeoutMs: callTimeoutMs > 0 ? callTimeoutMs : undefined,
          signal: callSignal,
        });
      });
    },

    async stream(method, signal, callTimeoutMs, header, input, contextValues) {
      const { signal: callSignal, end } = lifetime.start(signal);
      try {
        const args = [callSignal, limitTimeout(callTimeoutMs), await headersOf(header), input, contextValues] as const;
        const response = await transport.stream(method, ...args);
        return { ...response, message: convertStreamError(response.message, callSignal, end) } as typeof response;
      } catch (thrown) {
        end();
        callSignal.throwIfAborted();
        throw toGatehouseError(thrown);
      }
    },
  };
}

/** Limits the time that a transport measures by a timer. */
function limitTimeout(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined ? undefined : Math.min(timeoutMs, maxTimerMs);
}

/** Yields the messages of a stream and converts its error. */
async function* convertStreamError<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  end: () => void,
): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (thrown) {
    signal.throwIfAborted();
    throw toGatehouseError(thrown);
  } finally {
    end();
  }
}
