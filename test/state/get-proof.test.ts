/** Errors of a proof request if the values that are read do not match the tree. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { GetProofRequestSchema } from "../../gen/gatehouse/state/v1/state_pb.js";
import { createStateService, type ProvenBlock } from "../../src/state/service.js";
import { toRpcError } from "../../src/rpc/errors.js";

/** Requests a proof whose values never match the tree, and returns the error. `latest` returns the latest block. */
async function proofError(latest: () => bigint): Promise<{ readonly reason: string; readonly retryAfterS?: number }> {
  const block = (): ProvenBlock => ({
    ...{ number: latest(), header: new Uint8Array(), signature: new Uint8Array() },
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
  throw new Error("The proof succeeded.");
}

test("a proof whose values do not match the tree is OVERLOADED if blocks arrive, and otherwise DATABASE_DAMAGED", async (t) => {
  let number = 0n;
  t.like(await proofError(() => number++), { reason: "OVERLOADED", retryAfterS: 1 });
  t.is((await proofError(() => 7n)).reason, "DATABASE_DAMAGED");
});
