/** How the tests' servers of the public port answer: as those of a node with the default options. */
import { buildApplication, type NodeApplication } from "../../../src/express/application.js";
import type { ApplicationParts, RpcServerOptions } from "../../../src/rpc/server/rpc-server.js";

export const compiledFirst: RpcServerOptions<NodeApplication> = {
  edge: "compiled",
  buildApplication: (parts: ApplicationParts) => Promise.resolve(buildApplication(parts)),
};
