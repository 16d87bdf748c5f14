/** Service clients with streams that close when their loop ends. */
import type { DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";

type Stream = (request: object, options?: CallOptions) => AsyncIterable<unknown>;

/** Creates a client with a function for each rpc. */
export function createServiceClient<S extends DescService>(service: S, transport: Transport): Client<S> {
  const client = createClient(service, transport);
  const streams = service.methods
    .filter(({ methodKind }) => methodKind === "server_streaming")
    .map(({ localName }) => {
      const open = (client as Record<string, Stream>)[localName]!;
      return [localName, (request: object, options?: CallOptions) => closeOnExit(open, request, options)] as const;
    });
  return { ...client, ...Object.fromEntries(streams) };
}

/** Closes the stream when the consumer leaves the loop. The iterables of Connect leave the stream open. */
async function* closeOnExit(open: Stream, request: object, options: CallOptions = {}): AsyncGenerator {
  const controller = new AbortController();
  const caller = options.signal;
  const abort = (): void => controller.abort(caller?.reason);
  caller?.addEventListener("abort", abort, { once: true });
  if (caller?.aborted === true) {
    abort();
  }
  try {
    yield* open(request, { ...options, signal: controller.signal });
  } finally {
    caller?.removeEventListener("abort", abort);
    controller.abort();
  }
}
