/** Senders with keys of small order, for which anyone can forge signatures. */
import test from "ava";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { newProgram, post } from "../helpers/chain/submit.js";
import { forge, smallOrderKeys } from "../helpers/chain/weak-keys.js";

test("rejects transactions from keys of small order with 401", async (t) => {
  const { port } = await startMember(t);
  for (const publicKey of smallOrderKeys) {
    const key = { publicKey, sign: (bytes: Uint8Array) => forge(publicKey, bytes) } as TestKey;
    const { status, text } = await post(port, newProgram(key, 1));
    t.is(status, 401, text);
    t.like(JSON.parse(text), { errorCode: "INVALID_SIGNATURE" });
  }
  t.is((await post(port, newProgram(testKey(3), 1))).status, 200);
});
