/** The protocols that the library of Connect has a part in. It is loaded with the first call of one of them. */
import type { Exchange, Handler } from "../exchange/exchange.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-paths.js";
import type { ProtocolDeps } from "../gate.js";

export interface ConnectProtocols {
  /** Answers the paths of rpcs, over Connect and gRPC-Web. */
  readonly handle: Handler;
  /** Serves streams, gRPC-Web and compressed calls. */
  readonly serveByLibrary: ServeRpc;
}

/**
 * Builds what answers them.
 *
 * @param serveOther serves instead what the library would of HTTP/1.1.
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

  /** An exchange whose caller does not wait so long is nobody's any more. */
  function answer(exchange: Exchange, by: (protocols: ConnectProtocols) => void): void {
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
        answer(exchange, ({ handle }) => handle(exchange));
      }
      return isRpc;
    },
    serveByLibrary: (exchange, served, media) =>
      answer(exchange, ({ serveByLibrary }) => serveByLibrary(exchange, served, media)),
  };
}
