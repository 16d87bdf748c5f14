/** Faults of disks: full disks, corrupt files, and power loss. */
import { open, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Chance, createChance } from "../../../test/helpers/wire/hostile-values.js";
import { emptyDatabase } from "../nodes/network.js";
import type { CampaignNode } from "../nodes/node.js";
import { restartNode, type Fault, inSeconds, type Stage } from "./fault.js";

/** Fills the disk of a node for some seconds. */
export const disk: Fault = {
  description: "fills a node's disk for 2 to 10 s: writes that make a file longer fail, or all writes",
  unavailableReason: ({ disk }) => disk.unavailableReason,
  plan(chance) {
    const forMs = 2_000 + chance.below(8_000);
    const fullness = chance.pick(["full", "full in place"] as const);
    return {
      title: `disk ${fullness} for ${inSeconds(forMs)}`,
      async run(stage, node) {
        await stage.network.disk.setFull(node.home, fullness);
        await sleep(forMs);
        await stage.network.disk.setFull(node.home, "room");
      },
    };
  },
};

/** Corrupts bytes of a database file. */
export const corrupt: Fault = {
  description:
    "flips bytes of the database file of a running or stopped follower, which may fail but not serve wrong data; then empties the database",
  targets: [1, 2],
  unavailableReason: ({ databases }) => (databases.engine === "sqlite" ? undefined : "it requires SQLite"),
  plan(chance, target) {
    const [isRunning, seed, count] = [chance.below(2) === 0, chance.below(1_000_000), 4 + chance.below(40)];
    return {
      title: `${count} bytes flipped ${isRunning ? "while it runs" : "while it is stopped"}`,
      async run(stage, node) {
        node.mayEnd = true;
        if (!isRunning) {
          await node.end("SIGTERM");
        }
        await flip(stage.network.databases.fileOf(target), createChance(seed), count);
        if (!isRunning) {
          // The node may reject the corrupt file.
          await node.start().catch(() => undefined);
        }
        await readAll(stage, node);
        await node.end("SIGKILL");
        await emptyDatabase(stage.network, node);
        stage.model.resetNode(target);
        node.mayEnd = false;
        await restartNode(stage, node);
      },
    };
  },
};

async function flip(path: string, chance: Chance, count: number): Promise<void> {
  const { size } = await stat(path);
  const file = await open(path, "r+");
  const byte = Buffer.alloc(1);
  for (let i = 0; i < count; i++) {
    const at = chance.below(size);
    await file.read(byte, 0, 1, at);
    byte[0] = byte[0]! ^ (1 + chance.below(255));
    await file.write(byte, 0, 1, at);
  }
  await file.close();
}

/** Limit on the programs and transactions that are read from a node with a corrupt file. */
const maxReads = 150;

/** Reads blocks, programs and transactions of a node, for the model to check. Errors are allowed. */
async function readAll({ client, model }: Stage, node: CampaignNode): Promise<void> {
  await client.blocks(node, 1).catch(() => undefined);
  for (const address of model.addresses.slice(-maxReads)) {
    await client.document(node, address).catch(() => undefined);
  }
  for (const { hash } of model.included.slice(-maxReads)) {
    await client.transactionStatus(node, hash).catch(() => undefined);
  }
}

/** Simulates power loss: kills nodes, and undoes writes that were not synced. */
export const power: Fault = {
  isAlone: true,
  description:
    "cuts the power of a node, or of all nodes: kills it, and undoes all or some of the writes that were not synced",
  unavailableReason: ({ disk }) => disk.unavailableReason,
  plan(chance) {
    const [isAll, seed, downMs] = [chance.below(4) === 0, chance.below(1_000_000), chance.below(2_000)];
    return {
      title: `power cut${isAll ? " of all nodes" : ""}, back after ${inSeconds(downMs)}`,
      async run(stage, node) {
        const nodes = isAll ? stage.network.nodes : [node];
        await Promise.all(nodes.map((node) => node.end("SIGKILL")));
        const seeded = createChance(seed);
        for (const node of nodes) {
          await stage.network.disk.losePower(node.home, seeded);
        }
        await sleep(downMs);
        await Promise.all(nodes.map((node) => restartNode(stage, node)));
      },
    };
  },
};
