/** What a request for a proof gets where what is read does not fit together. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { GetProofRequestSchema } from "../../gen/gatehouse/state/v1/state_pb.js";
import { createStateService, type ProvenBlock } from "../../src/state/service.js";
import { toRpcError } from "../../src/rpc/errors.js";

/** The error of a proof whose values never fit the tree, where each attempt finds the newest block that this gives. */
async function errorWhere(newest: () => bigint): Promise<{ readonly reason: string; readonly retryAfterS?: number }> {
  const block = (): ProvenBlock => ({
    ...{ number: newest(), header: new Uint8Array(), signature: new Uint8Array() },
    stateRoot: new Uint8Array(32).fill(1),
  });
  const { getProof } = createStateService({
    tree: { pagesAfter: () => () => Promise.resolve(new Map()) },
    program: () => Promise.resolve(undefined),
    nullifier: () => Promise.resolve(undefined),
    lastNonce: () => Promise.resolve(undefined),
    commitments: () => Promise.resolve(undefined),
    latest: () => ({ ...block(), head: undefined }),
    block: () => Promise.resolve(undefined),
  });
  const request = create(GetProofRequestSchema, { senders: [`0x${"1".repeat(64)}`] });
  const call = { caller: { address: "", identity: undefined }, signal: new AbortController().signal };
  try {
    await getProof(request, call);
  } catch (error) {
    return toRpcError(error);
  }
  throw new Error("It was proved.");
}

test("blocks that come faster than a proof is made are no damage: the caller is to ask again", async (t) => {
  let number = 0n;
  const raced = await errorWhere(() => number++);
  t.like(raced, { reason: "OVERLOADED", retryAfterS: 1 });
});

test("what does not fit while no block comes is damage", async (t) => {
  t.is((await errorWhere(() => 7n)).reason, "DATABASE_DAMAGED");
});
