/** Paths of rpcs in gRPC, gRPC-Web and Connect: `/package.Service/Method`. */
import type { Exchange } from "./exchange.js";
import type { RpcMedia } from "./media-type.js";
import type { ServedMethod, ServedService } from "../service.js";

/** Serves a call of an rpc. */
export type ServeRpc = (exchange: Exchange, served: ServedMethod, media: RpcMedia) => void;

/** Returns every rpc by its path. */
export function methodsByPath(services: readonly ServedService[]): ReadonlyMap<string, ServedMethod> {
  return new Map(
    services.flatMap(({ methods }) =>
      methods.map((method) => [`/${method.desc.parent.typeName}/${method.desc.name}`, method] as const),
    ),
  );
}
