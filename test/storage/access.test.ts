import test from "ava";
import fc from "fast-check";
import { type AccessGroup, type AccessRule, canRead } from "../../src/storage/programs/access.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { createReadablePrograms } from "../../src/storage/stores/program-list-store.js";
import { insertProgram } from "../helpers/chain/seed.js";
import { prepareEngines } from "../helpers/databases/databases.js";

const engines = await prepareEngines();

const owner = "0xa";
const other = "0xb";
const modes = ["public", "owner", "restricted"] as const;

const member = (...permissions: AccessGroup["permissions"]): AccessGroup => ({ members: [other], permissions });

/** Callers, and the modes in which each may read a program. */
const table: readonly (readonly [
  caller: string,
  rule: Partial<AccessRule>,
  identity: string | undefined,
  readable: readonly AccessRule["mode"][],
])[] = [
  ["an anonymous caller", {}, undefined, ["public"]],
  ["the owner", {}, owner, modes],
  ["the owner, even if blacklisted", { blacklisted: [owner] }, owner, modes],
  ["another caller", {}, other, ["public"]],
  ["an allowed caller", { allowed: [other] }, other, ["public", "restricted"]],
  ["a blacklisted caller", { blacklisted: [other] }, other, []],
  ["a caller who is allowed and blacklisted", { allowed: [other], blacklisted: [other] }, other, []],
  ["a member of a group with read permission", { groups: { a: member("read") } }, other, ["public", "restricted"]],
  ["a member of a group with write permission only", { groups: { a: member("write") } }, other, ["public"]],
  ["a member of two groups", { groups: { a: member(), b: member("read") } }, other, ["public", "restricted"]],
  ["a blacklisted member", { groups: { a: member("read") }, blacklisted: [other] }, other, []],
];

test("the access rule decides who may read a program", (t) => {
  for (const [caller, rule, identity, readable] of table) {
    const complete = { owner, allowed: [], blacklisted: [], groups: {}, ...rule };
    t.deepEqual(
      modes.filter((mode) => canRead({ ...complete, mode }, identity)),
      [...readable],
      caller,
    );
  }
});

for (const engine of engines.names) {
  test(`${engine}: lists return the programs that canRead permits, for random programs and callers`, async (t) => {
    const keys = ["0xa", "0xb", "0xc", "0xd"];
    const keyList = fc.uniqueArray(fc.constantFrom(...keys), { maxLength: 3 });
    const rules = fc.array(
      fc.record({
        owner: fc.constantFrom(...keys),
        mode: fc.constantFrom(...modes),
        allowed: keyList,
        blacklisted: keyList,
        groups: fc.dictionary(
          fc.string({ minLength: 1, maxLength: 3 }),
          fc.record({ members: keyList, permissions: fc.subarray(["read" as const, "write" as const]) }),
          { maxKeys: 2 },
        ),
      }),
      { minLength: 300, maxLength: 300 },
    );
    const [sample] = fc.sample(rules, 1);
    const database = await engines.open(t, engine);
    const stored = sample!.map((rule, i) => ({ rule, address: `stor-${i.toString(16).padStart(40, "0")}` }));
    for (const [i, { rule, address }] of stored.entries()) {
      const { owner: ownerOf, mode, ...access } = rule;
      const program = { address, owner: ownerOf, mode, access, name: "same", type: "null", createdMs: i };
      await insertProgram(database, program);
    }
    const programs = createProgramStore(database.read);
    const readablePrograms = createReadablePrograms(database.read);
    for (const identity of [undefined, ...keys, "0xe"]) {
      const readable = stored.filter(({ rule }) => canRead(rule, identity)).map(({ address }) => address);
      const found = await programs.search("same", true, identity, { limit: 1000, offset: 0 });
      t.deepEqual(
        found.map(({ address }) => address),
        readable.toReversed(),
        `for ${identity ?? "an anonymous caller"}`,
      );
      const ofOwner = await programs.listByOwner(owner, identity, { limit: 1000, offset: 0 });
      const owned = stored.filter(({ rule }) => rule.owner === owner).map(({ address }) => address);
      t.deepEqual(
        ofOwner.map(({ address }) => address),
        readable.filter((address) => owned.includes(address)).toReversed(),
      );
      const all = stored.map(({ address }) => address);
      const returned = await readablePrograms.readableOf([...all, `stor-${"f".repeat(40)}`], identity);
      t.deepEqual([...returned].sort(), readable);
      const owners = await readablePrograms.ownersOf([...all, `stor-${"f".repeat(40)}`]);
      // The database returns them in any order.
      t.deepEqual(
        [...owners].sort(([one], [other]) => (one < other ? -1 : 1)),
        stored.map(({ address, rule }) => [address, rule.owner]),
      );
    }
  });

  test(`${engine}: a deleted program is readable only by its owner`, async (t) => {
    const database = await engines.open(t, engine);
    const programs = createReadablePrograms(database.read);
    for (const [i, mode] of (["public", "restricted"] as const).entries()) {
      const address = `stor-${String(i).repeat(40)}`;
      const access = { allowed: [other] };
      const deleted = { address, owner, mode, access, name: "a", type: "null", createdMs: 1, deleted: true };
      await insertProgram(database, deleted);
      for (const [identity, found] of [
        [undefined, []],
        [other, []],
        [owner, [address]],
      ] as const) {
        t.deepEqual([...(await programs.readableOf([address], identity))], [...found], `${mode} ${identity}`);
      }
    }
    t.deepEqual([...(await programs.readableOf([], owner))], []);
    t.deepEqual([...(await programs.ownersOf([`stor-${"0".repeat(40)}`]))], [[`stor-${"0".repeat(40)}`, owner]]);
    t.deepEqual([...(await programs.ownersOf([]))], []);
  });
}
