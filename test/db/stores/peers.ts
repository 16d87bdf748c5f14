import test from "ava";
import { loadPeers, savePeers } from "../../../src/peers/address-book/peer-store.js";
import type { StoredPeer } from "../../../src/peers/address-book/peer.js";
import type { StoreSuite } from "./suite.js";

const peer = (n: number): StoredPeer => ({
  ...{ endpoint: `https://198.51.100.1:${n}`, origin: "handshake", identity: undefined, expectedIdentity: undefined },
  ...{ connectionString: undefined, verifiedMs: undefined, lastSeenMs: undefined, failures: 0, nextTryMs: 0 },
});

export const testPeers: StoreSuite = (engine, open) => {
  test.serial(`${engine}: peers: the address book is read as it was stored`, async (t) => {
    const database = await open(t);
    t.deepEqual(await loadPeers(database.read), []);
    const many = Array.from({ length: 900 }, (_, i) => peer(i + 1));
    await savePeers(database, { saved: many, removed: [] });
    t.deepEqual(await loadPeers(database.read), many);
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
    const removed = many.slice(2).map(({ endpoint }) => endpoint);
    await savePeers(database, { saved: [changed, peer(1_000)], removed });
    t.deepEqual(await loadPeers(database.read), [peer(1), changed, peer(1_000)]);
  });

  test.serial(
    `${engine}: peers: the source of a peer is stored under the column values of released versions`,
    async (t) => {
      const database = await open(t);
      const origins = { file: "file", operator: "operator", hello: "handshake", gossip: "gossip" } as const;
      const rows = Object.keys(origins).map((origin) => ({ endpoint: origin, origin, failures: 0, next_try_ms: 0 }));
      await database.transaction((db) => db.runAll((sql) => [sql("peers").insert(rows)]));
      const peers = await loadPeers(database.read);
      t.deepEqual(
        peers.map(({ origin }) => origin),
        Object.values(origins),
      );
      await savePeers(database, { saved: peers, removed: [] });
      const stored = await database.read.rows<{ endpoint: string; origin: string }>((sql) =>
        sql("peers").orderBy("id").select("endpoint", "origin"),
      );
      t.true(stored.every(({ endpoint, origin }) => endpoint === origin));
    },
  );
};
