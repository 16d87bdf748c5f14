/** The storage programs of a new devnet: a public, a shared and a private one, made by real transactions. */
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { loadOrCreateNodeKey } from "../info/node-key.js";
import { programAddress } from "../storage/write.js";
import { join } from "node:path";
import { askSuccessfully } from "./ask-node.js";
import { identityHeaders } from "./caller.js";
import { followTransaction, submitChange } from "./submit.js";

const guestbook = '{"title": "Guestbook", "entries": ["Ann was here", "so was Bob"], "visits": 2, "open": true}';
const team = '{"topic": "Roadmap", "votes": {"ann": 3, "bob": 2}}';
const diary = '{"pin": 1234, "today": "Nobody reads this but me."}';

/**
 * Makes the programs, unless a network that was kept has them already.
 *
 * @returns curl lines, one for each route.
 */
export async function seedSamples(node: string, directory: string): Promise<string[]> {
  const alice = await loadOrCreateNodeKey(join(directory, "alice"));
  const bob = await loadOrCreateNodeKey(join(directory, "bob"));
  const programs = [
    { name: "guestbook", json: guestbook, access: { mode: AccessMode.PUBLIC } },
    {
      name: "team",
      json: team,
      access: {
        mode: AccessMode.RESTRICTED,
        groups: {
          editors: { members: [bob.publicKey], permissions: [AccessPermission.READ, AccessPermission.WRITE] },
        },
      },
    },
    { name: "diary", json: diary, access: { mode: AccessMode.OWNER } },
  ];
  // The nonces of the samples, so that their addresses are known when they are there already.
  const known = await askSuccessfully(node, `/storage-program/owner/${alice.publicKey}`);
  if (!known.includes("guestbook")) {
    const hashes: string[] = [];
    for (const [i, { name, json, access }] of programs.entries()) {
      const value = { programName: name, data: { data: { case: "json" as const, value: json } }, access };
      hashes.push(await submitChange(node, alice, { case: "createProgram", value }, i + 1));
    }
    await Promise.all(hashes.map((hash) => followTransaction(node, hash)));
  }
  const [open, shared, secret] = programs.map(({ name }, i) => {
    const address = programAddress(alice.publicKey, name, BigInt(i + 1), "");
    return `${node}/storage-program/${address}`;
  }) as [string, string, string];
  const signedBy = (key: typeof alice): string =>
    Object.entries(identityHeaders(key))
      .map(([header, value]) => `-H '${header}: ${value}'`)
      .join(" ");
  return [
    `curl '${open}'`,
    `curl '${open}/all'`,
    `curl '${open}/fields'`,
    `curl '${open}/field/title'`,
    `curl '${open}/field/entries/item/1'`,
    `curl '${open}/has/title'`,
    `curl '${open}/type/entries'`,
    `curl '${node}/storage-program/owner/${alice.publicKey}'`,
    `curl '${node}/storage-program/search?q=guest'`,
    `curl ${signedBy(bob)} '${shared}/all'`,
    `curl ${signedBy(alice)} '${secret}/all'`,
  ];
}
