/** Network of a campaign: an authority and two followers, connected by links that the campaign controls. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { freePort } from "../../../test/helpers/nodes/free-port.js";
import { genesisOf, testKey, writeKey } from "../../../test/helpers/chain/keys.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";
import type { Disk } from "../disk/disk.js";
import { addressOf, createLinks } from "./links.js";
import { type CampaignNode, createNode, type NodePlan } from "./node.js";
import type { Databases } from "./databases.js";

export type CampaignNetwork = Awaited<ReturnType<typeof prepareNetwork>>;

/** Names of the nodes. The first one produces the blocks. */
export const nodeNames = ["authority", "follower 1", "follower 2"] as const;

/** Returns the data directory of a node. */
export function homeOf(directory: string, name: string): string {
  return join(directory, name.replace(" ", "-"));
}

/** Prepares a network, without starting its nodes. */
export async function prepareNetwork(
  t: Teardown,
  {
    directory,
    databases,
    disk,
    onEnd,
  }: { readonly directory: string; readonly databases: Databases; readonly disk: Disk } & Pick<NodePlan, "onEnd">,
) {
  const genesis = genesisOf(testKey(1));
  const ports = await Promise.all(nodeNames.map(async () => ({ rpc: await freePort(), omni: await freePort() })));
  const links = await createLinks(
    t,
    ports.map(({ omni }) => omni),
  );
  const endpoint = (index: number): string => `https://127.0.0.1:${links.ports[index]}`;
  const nodes = await Promise.all(
    nodeNames.map(async (name, index) => {
      const home = homeOf(directory, name);
      const [genesisFile, peers] = [join(home, "genesis.json"), join(home, "peers.json")];
      await mkdir(home, { recursive: true });
      await writeFile(genesisFile, genesis);
      await writeKey(join(home, "identity.key"), testKey(1 + index));
      const others = nodeNames.flatMap((_, other) => (other === index ? [] : [{ url: endpoint(other) }]));
      await writeFile(peers, JSON.stringify(others));
      const { rpc, omni } = ports[index]!;
      return createNode(t, {
        ...{ index, name, home, onEnd, port: rpc },
        flags: [
          ...["--data-dir", home, "--genesis", genesisFile, "--peers", peers, "--database", databases.urlOf(index)],
          ...["--host", "127.0.0.1", "--rpc-port", String(rpc), "--omni-port", String(omni), "--port-drift", "deny"],
          ...["--omni-url", endpoint(index), "--allow-private-peers", "--loop-interval", "0.5"],
          // The load comes from one address, which has no limit.
          ...["--rate-limit", "0", "--log-level", "warn"],
        ],
        env: {
          CAMPAIGN_FROM: process.platform === "linux" ? addressOf(index) : "127.0.0.1",
          CAMPAIGN_WIRES: links.ports.join(","),
          ...(await disk.environmentOf(home)),
        },
      });
    }),
  );
  return { nodes, links, databases, disk, genesisHash: sha256(genesis) };
}

/** Empties a node's database, so that it synchronizes from the start. The node must not be running. */
export async function emptyDatabase({ databases, disk }: CampaignNetwork, node: CampaignNode): Promise<void> {
  await databases.empty(node.index);
  await disk.discardUndo(node.home);
}
