/** Client of the control service of a measured node. */
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { connect } from "node:net";
import { join } from "node:path";

/** Options for Connect clients. */
export function controlOf(dataDir: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    nodeOptions: { createConnection: () => connect(join(dataDir, "control.sock")) },
  });
}
