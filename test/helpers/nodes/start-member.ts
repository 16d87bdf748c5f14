/** A node that takes part in a network by itself, and the directory that it is prepared with. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { genesisOf } from "../chain/genesis.js";
import { type TestKey, testKey, writeKey } from "../chain/keys.js";
import { askJson } from "../wire/plain-client.js";
import { silentPeer, startTestNode, type TestNode } from "./start-node.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";
import { until } from "./until.js";

/**
 * A directory as a node's operator would prepare it: `genesis.json` of these authorities, and `identity.key` of the
 * first one.
 */
export async function authorityDirectory(t: Teardown, ...authorities: readonly TestKey[]) {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesisOf(...authorities));
  await writeKey(join(dir, "identity.key"), authorities[0]!);
  return dir;
}

/**
 * Starts a node that takes part by itself: it makes the blocks, and the one peer it knows never answers. Resolves when
 * it is accepting.
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
