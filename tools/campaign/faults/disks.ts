/** Faults of disks: full, corrupt, and without power. */
import { open, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Chance, createChance } from "../../../test/helpers/wire/hostile-values.js";
import { forget } from "../nodes/network.js";
import type { CampaignNode } from "../nodes/node.js";
import { bringBack, type Fault, inSeconds, type Stage, targetOf } from "./fault.js";

/** A disk that is full. */
export const disk: Fault = {
  kind: "disk",
  does: "fills a node's disk for 2 to 10 s: what makes a file longer fails, or every write",
  whyNot: ({ disk }) => disk.missing,
  plan(chance, target) {
    const forMs = 2_000 + chance.below(8_000);
    const fullness = chance.pick(["full", "full in place"] as const);
    return {
      ...{ kind: "disk", target, title: `disk ${fullness} for ${inSeconds(forMs)}` },
      async run(stage) {
        const node = targetOf(stage, target);
        await stage.network.disk.setFull(node.home, fullness);
        await sleep(forMs);
        await stage.network.disk.setFull(node.home, "room");
      },
    };
  },
};

/** A disk that gives back other bytes than were written. */
export const corrupt: Fault = {
  kind: "corrupt",
  does: "flips bytes of a follower's file, running or stopped: it may fail, and serves nothing that is wrong; then it joins anew",
  targets: [1, 2],
  whyNot: ({ databases }) => (databases.engine === "sqlite" ? undefined : "it is for files of SQLite"),
  plan(chance, target) {
    const [isRunning, seed, places] = [chance.below(2) === 0, chance.below(1_000_000), 4 + chance.below(40)];
    return {
      ...{
        kind: "corrupt",
        target,
        title: `${places} bytes flipped ${isRunning ? "while it runs" : "while it is stopped"}`,
      },
      async run(stage) {
        const node = targetOf(stage, target);
        node.mayEnd = true;
        if (!isRunning) {
          await node.end("SIGTERM");
        }
        await flip(stage.network.databases.fileOf(target), createChance(seed), places);
        if (!isRunning) {
          // It may refuse what it finds.
          await node.start().catch(() => undefined);
        }
        await readAll(stage, node);
        await node.end("SIGKILL");
        await forget(stage.network, node);
        stage.model.forget(target);
        node.mayEnd = false;
        await bringBack(stage, node);
      },
    };
  },
};

async function flip(path: string, chance: Chance, places: number): Promise<void> {
  const { size } = await stat(path);
  const file = await open(path, "r+");
  const byte = Buffer.alloc(1);
  for (let i = 0; i < places; i++) {
    const at = chance.below(size);
    await file.read(byte, 0, 1, at);
    byte[0] = byte[0]! ^ (1 + chance.below(255));
    await file.write(byte, 0, 1, at);
  }
  await file.close();
}

/** Most programs and transactions that are read of a node that may be corrupt. */
const mostRead = 150;

/** Reads all that a node has, which the model judges. What it refuses, it may refuse. */
async function readAll({ client, model }: Stage, node: CampaignNode): Promise<void> {
  await client.blocks(node, 1).catch(() => undefined);
  for (const address of model.addresses.slice(-mostRead)) {
    await client.document(node, address).catch(() => undefined);
  }
  for (const { hash } of model.included.slice(-mostRead)) {
    await client.fate(node, hash).catch(() => undefined);
  }
}

/** A machine that loses its power. */
export const power: Fault = {
  kind: "power",
  isAlone: true,
  does: "cuts the power of a node, or of all: killed, and what was not synced is not on the disk, or some of it",
  whyNot: ({ disk }) => disk.missing,
  plan(chance, target) {
    const [isAll, seed, downMs] = [chance.below(4) === 0, chance.below(1_000_000), chance.below(2_000)];
    return {
      ...{ kind: "power", target, title: `power cut${isAll ? " of all nodes" : ""}, back after ${inSeconds(downMs)}` },
      async run(stage) {
        const nodes = isAll ? stage.network.nodes : [targetOf(stage, target)];
        await Promise.all(nodes.map((node) => node.end("SIGKILL")));
        const drawn = createChance(seed);
        for (const node of nodes) {
          await stage.network.disk.losePower(node.home, drawn);
        }
        await sleep(downMs);
        await Promise.all(nodes.map((node) => bringBack(stage, node)));
      },
    };
  },
};
