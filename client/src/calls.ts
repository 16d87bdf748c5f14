/** What lies between the typed services and the wire: retries, identity, the client's lifetime, its one class of errors. */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { toGatehouseError } from "./errors.js";
import type { IdentityHeaders } from "./identity.js";
import type { ClientLifecycle } from "./lifetime.js";
import { withRetry, type RetryPolicy } from "./retry.js";

/** What it is made of. */
export interface CallsDeps {
  readonly transport: Transport;
  readonly lifetime: ClientLifecycle;
  readonly retry: RetryPolicy;
  /** For a call with all of its retries, where the call says nothing; streams have none. */
  readonly timeoutMs: number;
  /** Proves who calls; anonymous when left out. */
  readonly identity?: (() => Promise<IdentityHeaders>) | undefined;
}

/** Whether it changes nothing to make a call twice. A transaction is one however often it is handed in. */
function mayRepeat(method: DescMethod): boolean {
  return (
    method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ||
    method === (ChainService.method.submitTransaction as DescMethod)
  );
}

/** Builds it. */
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
          // As Connect has it: 0 is no limit.
          timeoutMs: callTimeoutMs > 0 ? callTimeoutMs : undefined,
          signal: own,
        });
      });
    },

    async stream(method, signal, callTimeoutMs, header, input, contextValues) {
      const { signal: own, end } = lifetime.begin(signal);
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

/** The messages of a stream, and what it ends with. */
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
