/** A node that is the only authority of its network, and its prepared directory. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { genesisOf } from "../chain/genesis.js";
import { type TestKey, testKey, writeKey } from "../chain/keys.js";
import { askJson } from "../wire/plain-client.js";
import { silentPeer, startTestNode, type TestNode } from "./start-node.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";
import { until } from "./until.js";

/**
 * Creates a data directory as an operator would: `genesis.json` with these authorities, and `identity.key` of the first
 * one.
 */
export async function authorityDirectory(t: Teardown, ...authorities: readonly TestKey[]) {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesisOf(...authorities));
  await writeKey(join(dir, "identity.key"), authorities[0]!);
  return dir;
}

/**
 * Starts a node that is the only authority of its network. Its one peer never responds. Resolves once the node accepts
 * transactions.
 */
export async function startMember(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean>> = {},
): Promise<TestNode> {
  const dir = await authorityDirectory(t, testKey(1));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  const own = { genesis: "genesis.json", peers: "peers.json", "loop-interval": "0.1" };
  const node = await startTestNode(t, { ...own, ...flags }, dir);
  await until(async () => (await askJson<{ accepting: boolean }>(node.port, "/health")).accepting);
  return node;
}
