/** The forms in which people write a number or a hash, each found by a search. */
import test from "ava";
import { join } from "node:path";
import { createLongChain } from "../../tools/bench/reads/long-chain.js";
import { startGatehouse } from "../../tools/bench/servers/server-process.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { askJson } from "../helpers/wire/plain-client.js";

test("a search finds a block by its number and its hash, as people write them", async (t) => {
  const chain = await createLongChain(join(await temporaryDirectory(t), "node"), 1_234);
  const node = await startGatehouse(chain.flags);
  t.teardown(() => node.stop());
  type Results = { readonly results: readonly { readonly block?: { readonly number: number } }[] };
  const find = async (query: string) =>
    (await askJson<Results>(node.port, `/search?q=${encodeURIComponent(query)}`)).results.map(
      ({ block }) => block?.number,
    );

  const { hash } = await askJson<{ readonly hash: string }>(node.port, "/chain/blocks/1234");
  const digits = hash.slice(2);
  for (const query of [
    "1234",
    "1,234",
    " 1,234 ",
    "latest",
    hash,
    digits,
    digits.toUpperCase(),
    `0X${digits.toUpperCase()}`,
  ]) {
    t.deepEqual(await find(query), [1_234], query);
  }
  for (const query of [
    "1,23",
    "12,34",
    "1,2345",
    "01,234",
    "1.234",
    ",234",
    "1,235",
    "9,999,999,999,999,999",
    `0X0x${digits}`,
  ]) {
    t.deepEqual(await find(query), [], query);
  }
});
