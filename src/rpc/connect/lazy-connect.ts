/** Lazy loading of the protocols that use the Connect library. The first call loads the library. */
import type { Exchange, Handler } from "../exchange/exchange.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-paths.js";
import type { ProtocolDeps } from "../gate.js";

export interface ConnectProtocols {
  /** Handles rpc paths, over Connect and gRPC-Web. */
  readonly handle: Handler;
  /** Serves streams, gRPC-Web and compressed calls. */
  readonly serveByLibrary: ServeRpc;
}

/**
 * Creates the lazy handlers.
 *
 * @param serveOther serves the HTTP/1.1 calls that the library would otherwise serve.
 */
export function createLazyConnect(deps: ProtocolDeps, serveOther?: (exchange: Exchange) => void): ConnectProtocols {
  const paths = methodsByPath(deps.services);
  let loading: Promise<ConnectProtocols> | undefined;
  let loaded: ConnectProtocols | undefined;

  async function load(): Promise<ConnectProtocols> {
    const [{ createConnectHandler, createUnaryHandler }, { createLibraryHandler }] = await Promise.all([
      import("./connect-handler.js"),
      import("./library-handler.js"),
    ]);
    const serveByLibrary = createLibraryHandler(deps);
    const handle = createConnectHandler(deps, createUnaryHandler(deps), (exchange, served, media) =>
      exchange.isHttp2 || serveOther === undefined ? serveByLibrary(exchange, served, media) : serveOther(exchange),
    );
    return (loaded = { serveByLibrary, handle });
  }

  /** Runs a handler when the library is loaded, unless the exchange has closed meanwhile. */
  function whenLoaded(exchange: Exchange, by: (protocols: ConnectProtocols) => void): void {
    if (loaded !== undefined) {
      by(loaded);
      return;
    }
    loading ??= load();
    loading
      .then((protocols) => (exchange.isClosed ? undefined : by(protocols)))
      .catch((error: unknown) => {
        loading = undefined;
        deps.onInternalError(error, exchange.requestId);
        exchange.abort();
      });
  }

  return {
    handle(exchange) {
      const isRpc = paths.has(exchange.path);
      if (isRpc) {
        whenLoaded(exchange, ({ handle }) => handle(exchange));
      }
      return isRpc;
    },
    serveByLibrary: (exchange, served, media) =>
      whenLoaded(exchange, ({ serveByLibrary }) => serveByLibrary(exchange, served, media)),
  };
}
