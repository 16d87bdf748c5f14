/** Connect transport over fetch, for browsers and Node.js. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { describeCertificateError } from "../../src/base/errors/certificate-error.js";
import { maxBytesFrom } from "./response-limits.js";

/**
 * Creates a transport that reports an unreachable node as `Unavailable`. Responses end when they are aborted. Unary
 * responses also end at a limit of bytes.
 *
 * @param headers sent with every call.
 */
export function connectOverFetch(baseUrl: string, headers: Readonly<Record<string, string>> = {}): Transport {
  return createConnectTransport({
    baseUrl,
    useBinaryFormat: true,
    interceptors: [
      (next) => async (request) => {
        for (const [name, value] of Object.entries(headers)) {
          request.header.set(name, value);
        }
        return await next(request);
      },
    ],
    fetch: async (input, init) => {
      const signal = init?.signal ?? undefined;
      try {
        const response = await globalThis.fetch(input, init);
        const isStream = response.headers.get("content-type")?.startsWith("application/connect+") === true;
        return withLimits(response, { signal, maxBytes: isStream ? Infinity : maxBytesFrom(urlOf(input)) });
      } catch (cause) {
        signal?.throwIfAborted();
        const rejected = describeCertificateError(baseUrl, cause, "NODE_EXTRA_CA_CERTS=FILE");
        const message = rejected ?? `No response from ${baseUrl}.`;
        throw new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
      }
    },
  });
}

function urlOf(input: RequestInfo | URL): string {
  return input instanceof Request ? input.url : String(input);
}

/** Conditions that end a response. */
interface Limits {
  readonly signal: AbortSignal | undefined;
  readonly maxBytes: number;
}

/**
 * Returns the same response with a body that fails when the signal is aborted or the limit is exceeded. Node.js 20 and
 * 22 lose the signal of a request if garbage is collected during the response. The connection would then keep the
 * process alive.
 */
function withLimits(response: Response, { signal, maxBytes }: Limits): Response {
  if (response.body === null) {
    return response;
  }
  const reader = response.body.getReader();
  const cancel = (): void => void reader.cancel(signal?.reason).catch(() => undefined);
  signal?.addEventListener("abort", cancel, { once: true });
  if (signal?.aborted === true) {
    cancel();
  }
  let bytes = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) {
        signal?.removeEventListener("abort", cancel);
        controller.close();
        return;
      }
      bytes += value.length;
      if (bytes > maxBytes) {
        cancel();
        throw new ConnectError(`The response is larger than ${maxBytes} bytes.`, Code.ResourceExhausted);
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}
