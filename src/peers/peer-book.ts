/** The peers that the node knows, and what it last learnt of each. */
import { readFile } from "node:fs/promises";
import { z } from "zod";

/** A peer, with the fields of the contract's `Peer` message. */
export interface Peer {
  readonly connection: { readonly connectionString: string };
  readonly identity: string;
  readonly verification: { readonly status: boolean; readonly message: string };
  readonly sync: {
    readonly status: boolean;
    readonly block?: bigint | undefined;
    readonly blockHash?: string | undefined;
  };
  readonly status: { readonly online: boolean; readonly timestampMs?: bigint | undefined; readonly ready: boolean };
}

/** A peer as it is configured. */
export interface PeerEntry {
  /** Connection string: scheme://host:port. */
  readonly url: string;
  /** Public key that the peer is expected to have: 0x and 64 lower-case hex digits. */
  readonly identity?: string | undefined;
}

/** What a peer said of itself. */
export interface PeerAnswer {
  readonly identity: string;
  readonly accepting: boolean;
  readonly head: { readonly number: bigint; readonly hash: string; readonly genesisHash: string } | undefined;
}

/** The book. */
export interface PeerBook {
  readonly entries: readonly PeerEntry[];
  /** All peers, in the order of the entries. The same list until one changes, frozen. */
  list(): readonly Peer[];
  recordAnswer(url: string, answer: PeerAnswer): void;
  recordSilence(url: string): void;
  /** Number of the highest head among the online peers of the same network; undefined when none is online. */
  highestBlock(): bigint | undefined;
}

/** Builds the book. `genesisHash` names this node's network; undefined while it has none. */
export function createPeerBook(
  entries: readonly PeerEntry[],
  genesisHash: () => string | undefined,
  nowMs: () => number,
): PeerBook {
  const peers = new Map<string, Peer>(entries.map((entry) => [entry.url, unknownPeer(entry)]));
  let list = Object.freeze([...peers.values()]);
  const expected = new Map(entries.map((entry) => [entry.url, entry.identity]));
  const foreign = new Set<string>();

  function record(url: string, peer: Peer): void {
    peers.set(url, deepFreeze(peer));
    list = Object.freeze([...peers.values()]);
  }

  return {
    entries,
    list: () => list,
    recordAnswer(url, answer) {
      const { head } = answer;
      const isForeign = head !== undefined && head.genesisHash !== genesisHash();
      foreign[isForeign ? "add" : "delete"](url);
      const wanted = expected.get(url);
      record(url, {
        connection: { connectionString: url },
        identity: wanted ?? answer.identity,
        verification: { status: false, message: verificationMessage(wanted, answer, isForeign) },
        sync: { status: answer.accepting, block: head?.number, blockHash: head?.hash },
        status: { online: true, timestampMs: BigInt(nowMs()), ready: answer.accepting && !isForeign },
      });
    },
    recordSilence(url) {
      const before = peers.get(url);
      if (before !== undefined) {
        record(url, {
          ...before,
          sync: { ...before.sync, status: false },
          status: { online: false, timestampMs: before.status.timestampMs, ready: false },
        });
      }
    },
    highestBlock() {
      let highest: bigint | undefined;
      for (const [url, { status, sync }] of peers) {
        const { block } = sync;
        if (status.online && block !== undefined && !foreign.has(url)) {
          highest = highest === undefined || block > highest ? block : highest;
        }
      }
      return highest;
    },
  };
}

function deepFreeze(peer: Peer): Peer {
  for (const part of [peer.connection, peer.verification, peer.sync, peer.status]) {
    Object.freeze(part);
  }
  return Object.freeze(peer);
}

function unknownPeer({ url, identity }: PeerEntry): Peer {
  return deepFreeze({
    connection: { connectionString: url },
    identity: identity ?? "",
    verification: { status: false, message: "The peer has not answered yet." },
    sync: { status: false },
    status: { online: false, ready: false },
  });
}

function verificationMessage(expected: string | undefined, answer: PeerAnswer, isForeign: boolean): string {
  if (isForeign) {
    return "The peer belongs to another network: its genesis differs.";
  }
  if (expected !== undefined && expected !== answer.identity) {
    return `The peer names itself ${answer.identity}, which is not the identity expected of it.`;
  }
  return "The peer names its identity but has not proved to hold the key.";
}

const peerFile = z.array(
  z.strictObject({
    url: z.string().regex(/^https?:\/\/(\[[0-9a-fA-F:.]+\]|[^/:?#@\s]+):\d{1,5}$/),
    identity: z
      .string()
      .regex(/^0x[0-9a-f]{64}$/)
      .optional(),
  }),
);

/**
 * Reads a peers file: a JSON array of `{"url": "http://host:port", "identity": "0x…"}`, identity optional.
 *
 * @throws Error with one sentence that names the file and what is wrong.
 */
export async function readPeersFile(path: string): Promise<PeerEntry[]> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new Error(
      `The peers file ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
  const parsed = peerFile.safeParse(json);
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join(".") ?? "";
    throw new Error(
      `The peers file ${path} must hold a JSON array of {"url": "http://host:port", "identity": "0x<64 hex digits>"}, ` +
        `identity optional${place === "" ? "" : `; look at entry ${place}`}.`,
    );
  }
  return [...new Map(parsed.data.map((entry) => [entry.url, entry])).values()];
}
