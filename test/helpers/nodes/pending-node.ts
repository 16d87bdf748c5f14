/** A node whose transactions stay pending. */
import { createClient } from "@connectrpc/connect";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ControlService } from "../../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { testKey } from "../chain/keys.js";
import { askJson } from "../wire/plain-client.js";
import { authorityDirectory, silentPeer, startTestNode, type TestNode } from "./start-node.js";
import type { Teardown } from "./teardown.js";
import { until } from "./until.js";

/**
 * Starts one of two authorities, which together need a consensus process. None delivers blocks, so all transactions stay
 * pending. Resolves once the node accepts transactions.
 */
export async function startPendingNode(t: Teardown): Promise<TestNode> {
  const dir = await authorityDirectory(t, testKey(1), testKey(2));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  const node = await startTestNode(t, { genesis: "genesis.json", peers: "peers.json", "loop-interval": "0.1" }, dir);
  const chain = { name: "chain", status: SubsystemStatus.READY, leaseS: 3600 };
  await createClient(ControlService, node.control).reportSubsystem(chain);
  await until(async () => (await askJson<{ accepting: boolean }>(node.port, "/health")).accepting);
  return node;
}
