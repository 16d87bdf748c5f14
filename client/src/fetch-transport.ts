/** Connect over fetch, which browsers and Node.js have. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

/**
 * A transport whose errors tell that nobody answers, and whose streams end when they are aborted.
 *
 * @param headers of every call.
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
        return isStream && signal !== undefined ? endingWith(signal, response) : response;
      } catch (cause) {
        signal?.throwIfAborted();
        throw new ConnectError(`Nobody answers at ${baseUrl}.`, Code.Unavailable, undefined, undefined, cause);
      }
    },
  });
}

/**
 * The same response, whose body ends when the signal is aborted. Node.js 20 and 22 forget a request's signal when garbage
 * is collected while the answer still comes: the connection, and with it the process, would stay.
 */
function endingWith(signal: AbortSignal, response: Response): Response {
  if (response.body === null) {
    return response;
  }
  const reader = response.body.getReader();
  const cancel = (): void => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) {
    cancel();
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        signal.removeEventListener("abort", cancel);
        controller.close();
      } else {
        controller.enqueue(value);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}
