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
import { withRetry, type RetryPolicy } from "./retry.js";

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
function mayRepeat(method: DescMethod): boolean {
  return (
    method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ||
    method === (ChainService.method.submitTransaction as DescMethod)
  );
}

/** Creates a transport with these additions. */
export function createCalls({ transport, lifetime, retry, timeoutMs, identity }: CallsDeps): Transport {
  async function headersOf(given: HeadersInit | undefined): Promise<Headers> {
    const headers = new Headers(given);
    if (identity !== undefined) {
      for (const [name, value] of Object.entries(await identity())) {
        headers.set(name, value);
      }
    }
    return headers;
  }

  return {
    async unary(method, signal, callTimeoutMs = timeoutMs, header, input, contextValues) {
      return await lifetime.run(signal, async (own) => {
        const attempt = async (leftMs: number | undefined) =>
          await transport.unary(method, own, leftMs, await headersOf(header), input, contextValues);
        return await withRetry(attempt, {
          retry: mayRepeat(method) ? retry : { ...retry, attempts: 1 },
          // In Connect, 0 means no limit.
          timeoutMs: callTimeoutMs > 0 ? callTimeoutMs : undefined,
          signal: own,
        });
      });
    },

    async stream(method, signal, callTimeoutMs, header, input, contextValues) {
      const { signal: own, end } = lifetime.start(signal);
      try {
        const args = [own, callTimeoutMs, await headersOf(header), input, contextValues] as const;
        const response = await transport.stream(method, ...args);
        return { ...response, message: untilEnd(response.message, own, end) } as typeof response;
      } catch (thrown) {
        end();
        own.throwIfAborted();
        throw toGatehouseError(thrown);
      }
    },
  };
}

/** Yields the messages of a stream and converts its error. */
async function* untilEnd<T>(messages: AsyncIterable<T>, signal: AbortSignal, end: () => void): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (thrown) {
    signal.throwIfAborted();
    throw toGatehouseError(thrown);
  } finally {
    end();
  }
}
