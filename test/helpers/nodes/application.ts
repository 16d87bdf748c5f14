/** How the tests' servers of the public port answer: as those of a node with the default options. */
import { buildApplication, type NodeApplication } from "../../../src/express/application.js";
import type { ApplicationDeps, RpcServerOptions } from "../../../src/rpc/server/rpc-server.js";

export const compiledFirst: RpcServerOptions<NodeApplication> = {
  edge: "compiled",
  buildApplication: (parts: ApplicationDeps) => Promise.resolve(buildApplication(parts)),
};
