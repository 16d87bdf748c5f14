/** Generates examples/vectors/identities.json: headers that prove the identity of a caller. */
import { identityMessage } from "../../../src/edge/identity.js";
import { alice, bob, type VectorKey, weakKey, weakSignature } from "./keys.js";
import { network, otherNetwork } from "./network.js";

interface Proof {
  readonly key: VectorKey;
  /** Header `identity`. Default: `ed25519:` and the public key. */
  readonly identity?: string;
  readonly timestamp: string;
  readonly network: string;
}

const timestamp = "1767225600000";

const proofs: Readonly<Record<string, Proof>> = {
  "for one network": { key: alice, timestamp, network },
  "of another key": { key: bob, timestamp, network },
  "for another network": { key: alice, timestamp, network: otherNetwork },
  "the key alone": { key: alice, identity: alice.publicKey, timestamp, network },
  "in upper case without 0x": {
    key: alice,
    identity: `ed25519:${alice.publicKey.slice(2).toUpperCase()}`,
    timestamp,
    network,
  },
};

/** Invalid headers. Each differs from valid ones in one respect. */
function refused() {
  const identity = `ed25519:${alice.publicKey}`;
  const right = identityMessage(identity, timestamp, network);
  const sign = (bytes: Uint8Array, key = alice): string => hex(key.sign(bytes));
  const headers = { identity, timestamp, network, signature: sign(right) };
  return [
    {
      name: "the digest's bytes are signed",
      why: "What is signed is the text of the digest.",
      headers: { ...headers, signature: sign(Buffer.from(right.toString("utf8"), "hex")) },
    },
    {
      name: "the text is signed",
      why: "What is signed is the text of its digest.",
      headers: { ...headers, signature: sign(Buffer.from(text(identity, timestamp, network))) },
    },
    {
      name: "the digest is in upper case",
      why: "Its hex digits are lower case.",
      headers: { ...headers, signature: sign(Buffer.from(right.toString("utf8").toUpperCase())) },
    },
    {
      name: "the text without the network is signed",
      why: "The header network says that it is in the text.",
      headers: { ...headers, signature: sign(identityMessage(identity, timestamp, undefined)) },
    },
    {
      name: "another key signs",
      why: "The signature is that of the identity.",
      headers: { ...headers, signature: sign(right, bob) },
    },
    {
      name: "another timestamp is sent",
      why: "What is sent is what is signed.",
      headers: { ...headers, timestamp: "1767225600001" },
    },
    {
      name: "the network is in upper case",
      why: "Its hex digits are lower case.",
      headers: {
        ...headers,
        network: upper(network),
        signature: sign(identityMessage(identity, timestamp, upper(network))),
      },
    },
    {
      name: "the timestamp is no number of milliseconds",
      why: "It has digits alone.",
      headers: {
        ...headers,
        timestamp: "2026-01-01",
        signature: sign(identityMessage(identity, "2026-01-01", network)),
      },
    },
    {
      name: "a key of small order",
      why: "Anybody can sign for it; by the equation alone this signature would hold.",
      headers: { ...headers, identity: `ed25519:${weakKey}`, signature: hex(weakSignature) },
    },
  ];
}

export function identityVectors(): string {
  return JSON.stringify({
    identities: Object.entries(proofs).map(([name, { key, network: named, ...proof }]) => {
      const identity = proof.identity ?? `ed25519:${key.publicKey}`;
      const message = identityMessage(identity, proof.timestamp, named);
      return {
        name,
        seed: key.seed,
        identity,
        timestamp: proof.timestamp,
        network: named,
        text: text(identity, proof.timestamp, named),
        digest: message.toString("utf8"),
        signature: hex(key.sign(message)),
      };
    }),
    refused: refused(),
  });
}

/** Description of the hashed text. A test compares it with the text that the node hashes. */
function text(identity: string, time: string, named: string): string {
  return `gatehouse-identity:${named}:${identity}:${time}`;
}

function upper(hash: string): string {
  return `0x${hash.slice(2).toUpperCase()}`;
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
