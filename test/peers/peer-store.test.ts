/** Peers and transactions that are relayed, in both databases. */
import test from "ava";
import { createChainStore } from "../../src/chain/chain-store.js";
import { stateIn } from "../../src/node/effects.js";
import { createPeerStore } from "../../src/peers/peer-store.js";
import { blank, type StoredPeer } from "../../src/peers/peer.js";
import { createPublic, openChain, signTransaction, testKey } from "../helpers/chain.js";
import { prepareEngines } from "../helpers/databases.js";

const engines = await prepareEngines();
test.after.always(() => engines.stop());

const peer = (n: number): StoredPeer => ({ ...blank, endpoint: `https://198.51.100.1:${n}`, origin: "handshake" });

for (const engine of engines.names) {
  test(`the address book comes back as it was stored (${engine})`, async (t) => {
    const store = createPeerStore(await engines.open(t, engine));
    t.deepEqual(await store.load(), []);
    const many = Array.from({ length: 300 }, (_, i) => peer(i + 1));
    await store.save({ saved: many, removed: [] });
    t.deepEqual(await store.load(), many);
    const known: StoredPeer = {
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
    await store.save({ saved: [known, peer(1_000)], removed: many.slice(2).map(({ endpoint }) => endpoint) });
    t.deepEqual(await store.load(), [peer(1), known, peer(1_000)]);
  });

  test(`who named a peer is stored in the words of always (${engine})`, async (t) => {
    const database = await engines.open(t, engine);
    const words = { file: "file", operator: "operator", hello: "handshake", gossip: "gossip" } as const;
    for (const origin of Object.keys(words)) {
      await database.write("peers").insert({ endpoint: origin, origin, failures: 0, next_try_ms: 0 });
    }
    const store = createPeerStore(database);
    const peers = await store.load();
    t.deepEqual(
      peers.map(({ origin }) => origin),
      Object.values(words),
    );
    await store.save({ saved: peers, removed: [] });
    const rows = (await database.read("peers").orderBy("id").select("endpoint", "origin")) as Record<string, string>[];
    t.true(rows.every(({ endpoint, origin }) => endpoint === origin));
  });

  test(`transactions wait to be relayed in the order in which they came (${engine})`, async (t) => {
    const database = await engines.open(t, engine);
    const chain = await openChain(database, [testKey(1)], () => 5_000);
    const store = createChainStore(database, stateIn);
    const hashes: string[] = [];
    for (let nonce = 1; nonce <= 5; nonce++) {
      hashes.push(await chain.submit(signTransaction(testKey(2), nonce, createPublic(`p${nonce}`, "{}"))));
    }
    const waiting = async (to: "authority" | "peer", beforeMs: number, limit = 10): Promise<string[]> =>
      (await store.pendingToRelay(to, beforeMs, limit)).map(({ hash }) => hash);
    t.deepEqual(await waiting("authority", 1), hashes);
    t.deepEqual(await waiting("authority", 1, 2), hashes.slice(0, 2));
    await store.markRelayed("peer", hashes.slice(0, 3), 100);
    t.deepEqual(await waiting("authority", 100), hashes);
    t.deepEqual(await waiting("peer", 100), hashes.slice(3));
    t.deepEqual(await waiting("peer", 101), hashes);
    await store.markRelayed("authority", hashes, 200);
    t.deepEqual(await waiting("authority", 200), []);
    t.deepEqual(await store.pendingSince(5_002, 10), hashes.slice(0, 2));
  });
}
