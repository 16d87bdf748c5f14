import test from "ava";
import { createPeerStore } from "../../../src/peers/address-book/peer-store.js";
import { unknownPeer, type StoredPeer } from "../../../src/peers/address-book/peer.js";
import type { StoreSuite } from "./suite.js";

const peer = (n: number): StoredPeer => ({
  ...unknownPeer,
  endpoint: `https://198.51.100.1:${n}`,
  origin: "handshake",
});

export const testPeers: StoreSuite = (engine, open) => {
  test.serial(`${engine}: peers: the address book is read as it was stored`, async (t) => {
    const store = createPeerStore(await open(t));
    t.deepEqual(await store.load(), []);
    const many = Array.from({ length: 900 }, (_, i) => peer(i + 1));
    await store.save({ saved: many, removed: [] });
    t.deepEqual(await store.load(), many);
    const changed: StoredPeer = {
      ...peer(2),
      origin: "operator",
      identity: `0x${"a".repeat(64)}`,
      expectedIdentity: `0x${"a".repeat(64)}`,
      connectionString: "http://198.51.100.1:1",
      verifiedMs: 1_800_000_000_000,
      lastSeenMs: 1_800_000_000_001,
      failures: 3,
      nextTryMs: 1_800_000_000_002,
    };
    await store.save({ saved: [changed, peer(1_000)], removed: many.slice(2).map(({ endpoint }) => endpoint) });
    t.deepEqual(await store.load(), [peer(1), changed, peer(1_000)]);
  });

  test.serial(
    `${engine}: peers: the source of a peer is stored under the column values of released versions`,
    async (t) => {
      const database = await open(t);
      const origins = { file: "file", operator: "operator", hello: "handshake", gossip: "gossip" } as const;
      const rows = Object.keys(origins).map((origin) => ({ endpoint: origin, origin, failures: 0, next_try_ms: 0 }));
      await database.transaction((db) => db.runAll((sql) => [sql("peers").insert(rows)]));
      const store = createPeerStore(database);
      const peers = await store.load();
      t.deepEqual(
        peers.map(({ origin }) => origin),
        Object.values(origins),
      );
      await store.save({ saved: peers, removed: [] });
      const stored = await database.read.rows<{ endpoint: string; origin: string }>((sql) =>
        sql("peers").orderBy("id").select("endpoint", "origin"),
      );
      t.true(stored.every(({ endpoint, origin }) => endpoint === origin));
    },
  );
};
