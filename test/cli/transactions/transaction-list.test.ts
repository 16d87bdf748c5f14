/** `gatehouse tx list`, `gatehouse storage history` and `gatehouse search`, and the pages of other lists. */
import test, { type ExecutionContext } from "ava";
import { type CliUser, pageToken, startWithUsers, withoutHeading } from "../../helpers/nodes/cli-users.js";
import { testKey } from "../../helpers/chain/keys.js";
import { likeLists } from "../../helpers/like-lists.js";

const [alice, bob] = [testKey(2).publicKey, testKey(3).publicKey];
const short = (key: string): string => `${key.slice(0, 10)}…${key.slice(-4)}`;
const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const hash = "0x[0-9a-f]{64}";

const create = async (as: CliUser, name: string, access: string): Promise<string> =>
  (await as.ok("storage", "create", name, "--access", access, "--data", "{}")).split("\n")[0]!;

/** Removes the padding of columns, whose widths depend on the content of a page. */
const withoutColumns = (line: string): string => line.replace(/ +/g, " ");

/** Asserts that the lines of a table match the patterns. */
function assertLines(t: ExecutionContext, stdout: string, patterns: readonly string[]): void {
  const lines = withoutHeading(stdout);
  t.is(lines.length, patterns.length, stdout);
  patterns.forEach((pattern, i) => t.regex(lines[i]!, new RegExp(`^${pattern}$`)));
}

test("transactions are listed with descriptions, latest first, and private ones only for their readers", async (t) => {
  const users = await startWithUsers(t);
  // Control characters in names of other users must not reach the terminal.
  const address = await create(users.alice, "no\u009btes", "public");
  for (const change of [
    ["write", address, "--data", '{"tags":[1]}'],
    ["set", address, "\u202etitle", '"b"'],
    ["append", address, "tags", "2"],
    ["set", address, "tags", "3", "--index", "0"],
    ["delete", address, "tags", "--index", "1"],
    ["delete", address, "\u202etitle"],
    ["access", address, "--access", "public"],
  ]) {
    await users.alice.ok("storage", ...change);
  }
  const diary = await create(users.bob, "diary", "owner");
  await users.alice.ok("zk", "commit", `0x${"0".repeat(63)}7`);

  const row = (block: number, key: string, description: string): string =>
    `${block} {2,}${time}  ${short(key)}  ${hash} ${description}`;
  const ofAlice = [
    row(10, alice, `Adds a commitment to the tree: 0x0{63}7`),
    row(8, alice, `Changes the access rule of ${address}`),
    row(7, alice, `Deletes the field "\ufffdtitle" of ${address}`),
    row(6, alice, `Deletes item 1 of the field "tags" of ${address}`),
    row(5, alice, `Sets item 0 of the field "tags" of ${address}`),
    row(4, alice, `Appends an item to the field "tags" of ${address}`),
    row(3, alice, `Sets the field "\ufffdtitle" of ${address}`),
    row(2, alice, `Replaces the document of ${address}`),
    row(1, alice, `Creates the program "no\ufffdtes" ${address}`),
  ];
  const withBlock9 = (block9: string): string[] => [ofAlice[0]!, block9, ...ofAlice.slice(1)];
  assertLines(t, await users.nobody.ok("tx", "list"), withBlock9(`9 {2,}${time}  private {2,}${hash}`));
  assertLines(t, await users.bob.ok("tx", "list"), withBlock9(row(9, bob, `Creates the program "diary" ${diary}`)));
  assertLines(t, await users.nobody.ok("tx", "list", "--sender", alice), ofAlice);
  t.is(await users.nobody.ok("tx", "list", "--sender", bob), "No transactions.\n");
  assertLines(t, await users.nobody.ok("tx", "list", "--block", "latest"), ofAlice.slice(0, 1));
  assertLines(t, await users.nobody.ok("tx", "list", "--block", "2"), ofAlice.slice(7, 8));

  const history = await users.nobody.ok("storage", "history", address);
  assertLines(t, history, [
    row(8, alice, "update access"),
    row(7, alice, 'delete field "\ufffdtitle"'),
    row(6, alice, 'delete item "tags"'),
    row(5, alice, 'set item "tags"'),
    row(4, alice, 'append item "tags"'),
    row(3, alice, 'set field "\ufffdtitle"'),
    row(2, alice, "write program"),
    row(1, alice, "create program"),
  ]);
  const rejected = await users.alice("storage", "history", diary);
  t.is(rejected.code, 1);
  t.regex(rejected.stderr, /^gatehouse: The node rejected the request: .* \(NOT_FOUND\)\n$/);
  assertLines(t, await users.bob.ok("storage", "history", diary), [row(9, bob, "create program")]);
  t.false((await users.nobody.ok("storage", "list", alice)).includes("\u009b"));
});

test("lists have pages with tokens, and reject invalid tokens and limits", async (t) => {
  const { alice: as } = await startWithUsers(t);
  const address = await create(as, "notes", "public");
  for (const name of ["a", "b", "c"]) {
    await create(as, `note ${name}`, "public");
    await as.ok("storage", "set", address, name, "1");
  }
  for (const [list, count] of [
    [["tx", "list"], 7],
    [["tx", "list", "--sender", alice], 7],
    [["block", "list"], 7],
    [["storage", "history", address], 4],
    [["storage", "list", alice], 4],
    [["storage", "search", "note"], 4],
  ] as const) {
    const name = list.join(" ");
    const complete = withoutHeading(await as.ok(...list));
    t.is(complete.length, count, name);
    const rows: string[] = [];
    let token: string | undefined = "";
    for (let pages = 0; token !== undefined && pages < 10; pages++) {
      const stdout = await as.ok(...list, "--limit", "2", ...(token === "" ? [] : ["--page-token", token]));
      rows.push(...withoutHeading(stdout));
      token = pageToken(stdout);
    }
    t.deepEqual(rows.map(withoutColumns), complete.map(withoutColumns), name);
    const json = JSON.parse(await as.ok(...list, "--limit", "1", "--json")) as { nextPageToken: string };
    t.is(pageToken(await as.ok(...list, "--limit", "1")), json.nextPageToken, name);

    const invalid = await as(...list, "--page-token", "x");
    t.is(invalid.code, 1, name);
    t.regex(invalid.stderr, /The page token must be the one that the previous page returned.*\(INVALID_REQUEST\)\n$/);
    for (const limit of ["0", "201", "x", "007", "1e1", "+5"]) {
      const { code, stderr } = await as(...list, "--limit", limit);
      t.is(code, 2, name);
      t.regex(stderr, /It must be a whole number from 1 to 200\. See: gatehouse /);
    }
  }
  // A caller that uses --offset counts the items, so no page token is printed.
  const withOffset = await as.ok("storage", "list", alice, "--limit", "2", "--offset", "1");
  t.is(pageToken(withOffset), undefined);
  t.regex(withOffset, / note b .*\n.* note a /s);
});

test("empty lists print a message; a missing block ends with an error, and a stopped node with code 3", async (t) => {
  const { alice: as, node } = await startWithUsers(t);
  t.is(await as.ok("block", "list"), "There is no block after the genesis yet.\n");
  t.is(await as.ok("tx", "list"), "No transactions.\n");
  const missing = await as("tx", "list", "--block", "1");
  t.is(missing.stderr, "gatehouse: The node rejected the request: There is no such block yet. (NOT_FOUND)\n");
  await node.stop();
  t.is((await as("tx", "list")).code, 3);
});

test("search shows the results that the caller may read", async (t) => {
  const commitment = `0x${"0".repeat(63)}7`;
  const { alice: owner, nobody } = await startWithUsers(t);
  const linesOf = async (...args: string[]): Promise<string[]> => (await owner.ok(...args)).split("\n");
  const [diary] = await linesOf("storage", "create", "di\u009bary", "--access", "owner", "--data", "{}");
  const [, line = ""] = await linesOf("zk", "commit", commitment);
  const hash = /0x[0-9a-f]{64}/.exec(line)![0];
  const blockHash = /0x[0-9a-f]{64}/.exec((await linesOf("block", "list"))[1]!)![0];

  const find = async (as: typeof owner, text: string) => withoutHeading(await as.ok("search", text));
  const block = new RegExp(`^block  2 ${blockHash} ${time}, 1 transaction$`);
  for (const text of ["2", "latest", blockHash, blockHash.slice(2).toUpperCase()]) {
    const [first, ...others] = await find(nobody, text);
    t.regex(first!, block, text);
    t.deepEqual(others, [], text);
  }
  t.deepEqual(await find(nobody, hash), [`transaction  ${hash} included in block 2`]);
  t.deepEqual(await find(nobody, commitment), [`commitment  ${commitment} leaf 0`]);
  t.regex((await find(nobody, alice))[0]!, new RegExp(`^identity  ${alice} last nonce \\d+$`));
  t.regex((await find(owner, alice))[0]!, new RegExp(`^identity  ${alice} last nonce \\d+, owns programs$`));
  const program = `^program  ${diary} "di\ufffdary" of ${short(alice)}, 2 bytes, changed ${time}$`;
  for (const text of [diary!, "DI\u009b"]) {
    t.regex((await find(owner, text))[0]!, new RegExp(program));
    t.is(await nobody.ok("search", text), "No matches among what you may read.\n");
  }
  likeLists(t, JSON.parse(await owner.ok("search", "2", "--json")), {
    query: "2",
    results: [{ kind: "block", block: { number: 2, hash: blockHash } }],
  });
});
