/**
 * Sample data of a new devnet, created by real transactions: a public, a shared and a private storage program, three
 * commitments and a spent nullifier.
 */
import { join } from "node:path";
import {
  addCommitment,
  createProgram,
  jsonText,
  type NewProgram,
  spendNullifier,
} from "../../../client/src/operations.js";
import { loadOrCreateNodeKey, type NodeKey, nodeKeyPath } from "../../base/crypto/node-key.js";
import { programAddress } from "../../storage/changes/write.js";
import { toHex } from "../../zk/poseidon.js";
import { requestOk } from "../calls/request-node.js";
import { followTransaction, submitChange } from "../transactions/submit.js";

const guestbook = '{"title": "Guestbook", "entries": ["Ann was here", "so was Bob"], "visits": 2, "open": true}';
const team = '{"topic": "Roadmap", "votes": {"ann": 3, "bob": 2}}';
const diary = '{"pin": 1234, "today": "Only I can read this."}';

const programNames = ["guestbook", "team", "diary"] as const;
const commitments = [101n, 102n, 103n].map(toHex);
const nullifier = toHex(7n);

export interface SampleSection {
  readonly title: string;
  readonly lines: readonly string[];
}

/**
 * Creates the samples, unless a retained network has them already.
 *
 * @param authority Key of the authority in the genesis, which alone may spend a nullifier without a proof.
 */
export async function seedSamples(
  node: string,
  directory: string,
  authority: NodeKey,
  cli: string,
): Promise<SampleSection[]> {
  const [aliceDir, bobDir] = [join(directory, "alice"), join(directory, "bob")];
  const alice = await loadOrCreateNodeKey(aliceDir);
  const bob = await loadOrCreateNodeKey(bobDir);
  const first = await seedPrograms(node, alice, bob);
  await seedZk(node, alice, authority, first);
  const [open, shared, secret] = programNames.map(
    (name, i) => `${node}/storage-program/${programAddress(alice.publicKey, name, BigInt(i + 1), "")}`,
  ) as [string, string, string];
  // A signature is valid for five minutes, so that each run of the command creates its own.
  const signedBy = (keyDir: string, url: string): string =>
    `${cli} identity headers --node '${node}' --key '${nodeKeyPath(keyDir)}' | xargs curl '${url}'`;
  const programs = [
    `curl '${open}'`,
    `curl '${open}/all'`,
    `curl '${open}/fields'`,
    `curl '${open}/field/title'`,
    `curl '${open}/field/entries/item/1'`,
    `curl '${open}/has/title'`,
    `curl '${open}/type/entries'`,
    `curl '${node}/storage-program/owner/${alice.publicKey}'`,
    `curl '${node}/storage-program/search?q=guest'`,
  ];
  const signed = [signedBy(bobDir, `${shared}/all`), signedBy(aliceDir, `${secret}/all`)];
  const zk = [
    `curl '${node}/zk/merkle-root'`,
    `curl '${node}/zk/merkle/proof/${commitments[1]}'`,
    `curl '${node}/zk/nullifier/${nullifier}'`,
  ];
  return [
    { title: "Storage programs, created by Alice's transactions:", lines: programs },
    { title: "A program that Bob may read, and one that only Alice may:", lines: signed },
    { title: "Alice's commitments, and a spent nullifier:", lines: zk },
  ];
}

/** Creates the programs. Returns the next nonce of Alice. */
async function seedPrograms(node: string, alice: NodeKey, bob: NodeKey): Promise<number> {
  const editors = { members: [bob.publicKey], permissions: ["read", "write"] } as const;
  const programs: readonly NewProgram[] = [
    { name: programNames[0], data: jsonText(guestbook), access: "public" },
    { name: programNames[1], data: jsonText(team), access: { mode: "restricted", groups: { editors } } },
    { name: programNames[2], data: jsonText(diary), access: "owner" },
  ];
  // The samples use fixed nonces, so that their addresses are known if they exist already.
  const known = await requestOk(node, `/storage-program/owner/${alice.publicKey}`);
  if (!known.includes("guestbook")) {
    const hashes: string[] = [];
    for (const [i, program] of programs.entries()) {
      hashes.push(await submitChange(node, alice, createProgram(program), i + 1));
    }
    await Promise.all(hashes.map((hash) => followTransaction(node, hash)));
  }
  return programs.length + 1;
}

async function seedZk(node: string, alice: NodeKey, authority: NodeKey, firstNonce: number): Promise<void> {
  const { leafCount } = JSON.parse(await requestOk(node, "/zk/merkle-root")) as { leafCount: number };
  if (leafCount > 0) {
    return;
  }
  const hashes: string[] = [];
  for (const [i, commitment] of commitments.entries()) {
    hashes.push(await submitChange(node, alice, addCommitment(commitment), firstNonce + i));
  }
  hashes.push(await submitChange(node, authority, spendNullifier({ nullifierHash: nullifier }), 1));
  await Promise.all(hashes.map((hash) => followTransaction(node, hash)));
}
