/** The control service of a node that is measured. */
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { connect } from "node:net";
import { join } from "node:path";

/** For clients of Connect. */
export function controlOf(dataDir: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    nodeOptions: { createConnection: () => connect(join(dataDir, "control.sock")) },
  });
}
