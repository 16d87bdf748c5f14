/** Lazy loading of the protocols that use the Connect library. The first call loads the library. */
import type { Exchange, Handler } from "../exchange/exchange.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-requests.js";
import { createLazyHandler } from "../exchange/serve.js";
import type { ProtocolDeps } from "../gate.js";

/**
 * Creates the lazy handlers of rpc paths, over Connect and gRPC-Web, and of the calls that the library serves: streams,
 * gRPC-Web and compressed calls.
 *
 * @param serveOther serves the HTTP/1.1 calls that the library would otherwise serve.
 */
export function createLazyConnect(deps: ProtocolDeps, serveOther?: (exchange: Exchange) => void) {
  const paths = methodsByPath(deps.services);
  const lazy = createLazyHandler(async () => {
    const [{ createConnectHandler, createUnaryHandler }, { createLibraryHandler }] = await Promise.all([
      import("./connect-handler.js"),
      import("./library-handler.js"),
    ]);
    const serveByLibrary = createLibraryHandler(deps);
    const handle = createConnectHandler(deps, createUnaryHandler(deps), (exchange, served, media) =>
      exchange.isHttp2 || serveOther === undefined ? serveByLibrary(exchange, served, media) : serveOther(exchange),
    );
    return { serveByLibrary, handle };
  }, deps);

  const handle: Handler = (exchange) => {
    const isRpc = paths.has(exchange.path);
    if (isRpc) {
      lazy.handle(exchange, (loaded) => loaded.handle(exchange));
    }
    return isRpc;
  };
  const serveByLibrary: ServeRpc = (exchange, served, media) =>
    lazy.handle(exchange, (loaded) => loaded.serveByLibrary(exchange, served, media));
  return { handle, serveByLibrary };
}
