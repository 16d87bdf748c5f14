/** Judgment of another node's lease by a clock that the tests set. */
import test from "ava";
import { createLeaseObserver } from "../../src/chain/writer/lease-observer.js";
import { leaseMs } from "../../src/chain/writer/writer-lease-store.js";

const lease = { epoch: 3, untilMs: 1_000 };
const secondMs = 1_000;

/** Creates an observer, and a function that reads a lease each second for some time and returns the last judgment. */
function createWatch() {
  let ms = 0;
  const observer = createLeaseObserver(() => ms);
  const watch = (shown: typeof lease, forMs: number): number => {
    let leftMs = observer.observe(shown);
    for (const endMs = ms + forMs; ms < endMs;) {
      ms += secondMs;
      leftMs = observer.observe(shown);
    }
    return leftMs;
  };
  return { observer, watch, pass: (forMs: number) => (ms += forMs) };
}

test("a lease is free after a full term in which the database showed it unchanged, even if it had expired before", (t) => {
  const { observer, watch } = createWatch();
  t.is(observer.observe(lease), leaseMs);
  t.is(watch(lease, leaseMs - secondMs), secondMs);
  t.is(watch(lease, secondMs), 0);
});

test("a renewal starts the term again, whatever time the database's clock shows", (t) => {
  const { watch } = createWatch();
  t.is(watch(lease, leaseMs - secondMs), secondMs);
  t.is(watch({ ...lease, untilMs: lease.untilMs - 1 }, leaseMs - secondMs), secondMs);
  t.is(watch({ ...lease, epoch: lease.epoch + 1 }, 0), leaseMs);
});

test("a database that did not respond starts the term again", (t) => {
  const { observer, watch } = createWatch();
  watch(lease, leaseMs - secondMs);
  observer.restart();
  t.is(watch(lease, leaseMs - secondMs), secondMs);
  t.is(watch(lease, secondMs), 0);
});

test("a response that comes late, from a database or in a process that was frozen, starts the term again", (t) => {
  const { watch, pass } = createWatch();
  watch(lease, leaseMs - secondMs);
  pass(leaseMs);
  t.is(watch(lease, 0), leaseMs);
  t.is(watch(lease, leaseMs), 0);
});
