/** `gatehouse search` against a real node. */
import test from "ava";
import { startWithUsers, withoutHeading } from "../helpers/nodes/cli-users.js";
import { testKey } from "../helpers/chain/keys.js";

const alice = testKey(2).publicKey;
const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const commitment = `0x${"0".repeat(63)}7`;

test("search shows the results that the caller may read", async (t) => {
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
  const program = `^program  ${diary} "di\ufffdary" of ${alice.slice(0, 10)}…${alice.slice(-4)}, 2 bytes, changed ${time}$`;
  for (const text of [diary!, "DI\u009b"]) {
    t.regex((await find(owner, text))[0]!, new RegExp(program));
    t.is(await nobody.ok("search", text), "No matches among what you may read.\n");
  }
  t.like(JSON.parse(await owner.ok("search", "2", "--json")), {
    query: "2",
    results: [{ kind: "block", block: { number: 2, hash: blockHash } }],
  });
});
