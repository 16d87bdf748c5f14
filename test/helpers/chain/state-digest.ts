/** The state of a chain as text, to compare nodes with each other. */
import type { Database } from "../../../src/db/queries/database.js";
import { membersOf } from "../../../src/storage/documents/document.js";
import { createProgramStore } from "../../../src/storage/stores/program-store.js";
import { createNullifierStore } from "../../../src/zk/nullifier-store.js";
import { createTreeStore } from "../../../src/zk/tree-store.js";
import type { HostileTransactions } from "./hostile-transactions.js";

const everything = { limit: 1_000, offset: 0 };

/** Returns the state, one line for each item, with the programs and senders of a transaction source. */
export async function readState(
  database: Database,
  { senders, addresses, elements }: Pick<HostileTransactions, "senders" | "addresses" | "elements">,
): Promise<string[]> {
  const programs = createProgramStore(database.read);
  const [tree, nullifiers] = [createTreeStore(database.read), createNullifierStore(database.read)];
  const lines: string[] = [];
  const say = (name: string, value: unknown): void => {
    lines.push(`${name}: ${JSON.stringify(value, (_, one: unknown) => (typeof one === "bigint" ? String(one) : one))}`);
  };
  for (const address of addresses) {
    const full = await programs.findWithData(address);
    say(address, full);
    const names = full?.record.type === "object" ? membersOf(full.data ?? "{}").map(({ name }) => name) : [];
    for (const name of names) {
      say(`${address} ${JSON.stringify(name)}`, (await programs.findWithField(address, name))?.field);
    }
  }
  for (const owner of senders) {
    for (const identity of [undefined, ...senders]) {
      say(`programs of ${owner} for ${identity ?? "anybody"}`, await programs.listByOwner(owner, identity, everything));
    }
  }
  for (const query of ["a", "name", "%", "_", "é", "i̇", "ﬁ", "ss", "\\", "?", "'", '"', "😀", "honest", "yyy"]) {
    for (const exact of [false, true]) {
      say(`search ${query} ${exact}`, await programs.search(query, exact, senders[1], everything));
    }
  }
  say("programs", await programs.createdCount());
  say("root", await tree.root());
  for (const element of elements) {
    if (/^0x[0-9a-f]{64}$/.test(element)) {
      say(`leaf ${element}`, await tree.path(element, undefined));
      say(`nullifier ${element}`, await nullifiers.find(element));
    }
  }
  return lines;
}
