import test from "ava";
import { createSenderStore } from "../../../src/chain/blocks/sender-store.js";
import type { StoreSuite } from "./suite.js";

const largest = BigInt(Number.MAX_SAFE_INTEGER);

export const testSenders: StoreSuite = (engine, open) => {
  test.serial(`${engine}: senders: the last nonces of 1,000 senders are stored and updated`, async (t) => {
    const { read, write } = await open(t);
    const senders = createSenderStore(read);
    const save = (nonces: ReadonlyMap<string, bigint>) => createSenderStore(write).saveNonces(nonces);
    t.is(await senders.lastNonce("0x1"), undefined);
    const many = new Map(Array.from({ length: 1_000 }, (_, i) => [`0x${i}`, BigInt(i)] as const));
    await save(many);
    t.deepEqual(Object.fromEntries(await senders.lastNonces([...many.keys(), "0xnobody"])), Object.fromEntries(many));
    await save(
      new Map([
        ["0x1", largest],
        ["0xnew", 1n],
      ]),
    );
    t.is(await senders.lastNonce("0x1"), largest);
    t.is(await senders.lastNonce("0x0"), 0n);
    t.is(await senders.lastNonce("0x2"), 2n);
    t.deepEqual(Object.fromEntries(await senders.lastNonces(["0xnew", "0x1"])), { "0x1": largest, "0xnew": 1n });
    t.deepEqual(await senders.lastNonces([]), new Map());
  });
};
