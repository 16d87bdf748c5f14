/** What comes of dialing a peer, where it is not what was hoped for. */
import test from "ava";
import { createDialer } from "../../src/peers/dialer.js";
import type { PeerClient } from "../../src/peers/client.js";
import { createPeerBook } from "../../src/peers/peer-book.js";
import { CallError } from "../../src/rpc/channel.js";
import { testKey } from "../helpers/keys.js";

const endpoint = "https://198.51.100.1:1";

/** Dials a peer whose every call ends like this. */
async function dial(failure: Error) {
  const errors: unknown[] = [];
  const book = createPeerBook({ ownIdentity: testKey(1).publicKey, stored: [], intervalMs: 1_000, nowMs: Date.now });
  book.add(endpoint, "file");
  const client: Pick<PeerClient, "call" | "drop"> = { call: () => Promise.reject(failure), drop: () => undefined };
  const dialer = createDialer({
    self: {
      key: testKey(1),
      genesisHash: "0x1",
      version: "0",
      connectionString: () => "http://198.51.100.2:1",
      endpoint: () => "https://198.51.100.2:2",
      status: () => ({}),
    },
    book,
    client: client as PeerClient,
    policy: { tls: true, allowPrivate: false },
    readStatus: () => ({ head: { number: 0n, hash: "0x1" }, accepting: true }),
    nowMs: Date.now,
    onVerified: () => undefined,
    onError: (error) => errors.push(error),
  });
  await dialer.dial(endpoint, 0);
  return { errors, entry: book.get(endpoint)! };
}

test("an error of this node's own is reported, and not held against the peer", async (t) => {
  const bug = new TypeError("undefined is not a function");
  const { errors, entry } = await dial(bug);
  t.deepEqual(errors, [bug]);
  t.like(entry, { failures: 0, message: undefined });
});

test("a peer that does not answer, or refuses this node, is no error of this node's", async (t) => {
  const silent = await dial(new CallError("no answer", false));
  t.deepEqual(silent.errors, []);
  t.like(silent.entry, { failures: 1, message: undefined });
  const refusing = await dial(new CallError("another network", true));
  t.deepEqual(refusing.errors, []);
  t.like(refusing.entry, { failures: 1, message: "The peer refuses this node: another network" });
});
