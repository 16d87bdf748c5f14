/** Lazy loading of the protocols that use the Connect library. The first call loads the library. */
import type { Handler } from "../exchange/exchange.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-requests.js";
import { createLazyHandler } from "../exchange/serve.js";
import type { ProtocolDeps } from "../gate.js";

/** Creates the lazy handlers of rpc paths, and of the calls that the library serves: streams and compressed calls. */
export function createLazyConnect(deps: ProtocolDeps) {
  const paths = methodsByPath(deps.services);
  const lazy = createLazyHandler(async () => {
    const [{ createConnectHandler }, { createLibraryHandler }] = await Promise.all([
      import("./connect-handler.js"),
      import("./library-handler.js"),
    ]);
    const serveByLibrary = createLibraryHandler(deps);
    return { serveByLibrary, handle: createConnectHandler(deps, serveByLibrary) };
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
