import { create } from "@bufbuild/protobuf";
import test from "ava";
import { Caching } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { SignedHeadSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { ChainHead } from "../../../src/chain/blocks/store-types.js";
import { createStateTags } from "../../../src/node/serving/state-tags.js";

const hashOf = (digit: string): string => `0x${digit.repeat(64)}`;
const block: ChainHead = {
  ...{ number: 7n, hash: hashOf("7"), timestampMs: 1n, genesisHash: hashOf("0"), lowestBlock: 1n },
  ...{ header: new Uint8Array(), signature: new Uint8Array() },
};

test("tags differ with the block, the network, the retained blocks and, for the head, the signed head", (t) => {
  let head: ChainHead | undefined;
  let statement: number | undefined;
  const tags = createStateTags({
    chain: { head: () => head },
    heads: {
      latestSignedHead: () =>
        statement === undefined ? undefined : create(SignedHeadSchema, { statement: new Uint8Array([statement]) }),
    },
    genesis: () => head && { hash: head.genesisHash },
  });
  const tagsOf = (...state: [ChainHead | undefined, number?]) => {
    [head, statement] = state;
    return [Caching.STATE, Caching.HASH, Caching.HEAD].map((rule) => tags.tagOf(rule));
  };
  t.deepEqual(tagsOf(undefined), [undefined, undefined, undefined]);
  t.is(tags.tagOf(Caching.NETWORK), undefined);
  const first = tagsOf(block);
  t.regex(first[0]!, /^W\/"7\.[\w-]{22}"$/);
  t.is(first[1], first[0]);
  const network = tags.tagOf(Caching.NETWORK);
  t.regex(network!, /^W\/"network\./);
  const heads = [first[2], tagsOf(block, 1)[2], tagsOf(block, 2)[2]];
  t.is(tagsOf(block, 2)[0], first[0]);
  t.is(new Set([...heads, first[0], network]).size, 5);
  const others = [{ hash: hashOf("8") }, { genesisHash: hashOf("1") }, { lowestBlock: 2n }, { number: 8n }];
  t.is(new Set([first[0], ...others.map((other) => tagsOf({ ...block, ...other })[0])]).size, 5);
  t.deepEqual(tagsOf({ ...block }), first);
});
