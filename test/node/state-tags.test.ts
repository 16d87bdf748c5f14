import { create } from "@bufbuild/protobuf";
import test from "ava";
import { Caching } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { SignedHeadSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { ChainHead } from "../../src/chain/blocks/store-types.js";
import { createStateTags } from "../../src/node/serving/state-tags.js";

const hashOf = (digit: string): string => `0x${digit.repeat(64)}`;
const block: ChainHead = {
  ...{ number: 7n, hash: hashOf("7"), timestampMs: 1n, genesisHash: hashOf("0"), lowestBlock: 1n },
  ...{ header: new Uint8Array(), signature: new Uint8Array() },
};

/** The tags of a node with this head. `signedHead` is the statement of its latest signed head. */
function tagsOf(head: ChainHead | undefined, signedHead?: number) {
  const signed = create(SignedHeadSchema, {
    statement: new Uint8Array([signedHead ?? 0]),
    signature: new Uint8Array(64),
  });
  const tags = createStateTags({
    chain: { head: () => head },
    heads: { latestSignedHead: () => (signedHead === undefined ? undefined : signed) },
    genesis: () => ({ hash: head?.genesisHash ?? hashOf("0") }),
  });
  return {
    network: tags.tagOf(Caching.NETWORK),
    state: tags.tagOf(Caching.STATE),
    hash: tags.tagOf(Caching.HASH),
    head: tags.tagOf(Caching.HEAD),
  };
}

test("equal states have equal tags, on another node and after a restart", (t) => {
  t.deepEqual(tagsOf({ ...block }, 1), tagsOf({ ...block }, 1));
  t.is(tagsOf(block).state, tagsOf(block).hash);
  t.regex(tagsOf(block).state!, /^W\/"7\.[\w-]{22}"$/);
});

test("tags differ for another block with the same number, another network and fewer retained blocks", (t) => {
  const others = [
    { ...block, hash: hashOf("8") },
    { ...block, genesisHash: hashOf("1") },
    { ...block, lowestBlock: 2n },
    { ...block, number: 8n },
  ];
  t.is(new Set([block, ...others].map((head) => tagsOf(head).state)).size, 5);
  t.is(new Set([block, ...others].map((head) => tagsOf(head, 1).head)).size, 5);
});

test("a new signed head changes only the tag of the head", (t) => {
  const tags = [undefined, 1, 2].map((time) => tagsOf(block, time));
  t.is(new Set(tags.map(({ head }) => head)).size, 3);
  t.is(new Set(tags.map(({ state }) => state)).size, 1);
  t.is(new Set(tags.flatMap(({ state, head, network }) => [state, head, network])).size, 5);
});

test("a node without a state has only the tag of the network", (t) => {
  const { network, ...others } = tagsOf(undefined);
  t.truthy(network);
  t.deepEqual(Object.values(others), [undefined, undefined, undefined]);
});

test("the tag changes with the head of the chain", (t) => {
  let head = block;
  const tags = createStateTags({
    chain: { head: () => head },
    heads: { latestSignedHead: () => undefined },
    genesis: () => undefined,
  });
  const first = tags.tagOf(Caching.STATE);
  head = { ...block, number: 8n, hash: hashOf("8") };
  t.not(tags.tagOf(Caching.STATE), first);
  head = { ...block };
  t.is(tags.tagOf(Caching.STATE), first);
  t.is(tags.tagOf(Caching.NETWORK), undefined);
});
