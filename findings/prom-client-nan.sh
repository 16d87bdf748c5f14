#!/usr/bin/env bash
# prom-client rejects Infinity, null and text in a counter, but accepts NaN, which no later increment repairs.
#
# Version: prom-client 15.1.3.
# Behavior: Counter.inc(NaN) does not throw, and the counter is "Nan" until the process ends. An undefined label
#   and no label at all are one series, which has the name of whichever came first.
# Seen: the errors of Infinity and "1"; the exposition after NaN and 5 more; two increments of {peer: undefined} and one
#   without labels, as {peer="undefined"} 3 and, in the other order, as a total without labels.
# Why it matters: one missing figure (undefined - 1) ends a counter for good: rate() is NaN, and alerts on it stay silent,
#   since comparisons with NaN are false. Errors of unknown peers
#   look like the total, or the total like those.
. "$(dirname "$0")/common.sh"

packages prom-client@15.1.3
program run.mjs <<'JS'
import client from "prom-client";

const registers = [new client.Registry()];
const blocks = new client.Counter({ name: "blocks", help: "Blocks.", registers });
for (const value of [Infinity, "1", NaN]) {
  try {
    blocks.inc(value);
    console.log(value, "is accepted");
  } catch ({ message }) {
    console.log(message);
  }
}
blocks.inc(5);
const errors = new client.Counter({ name: "errors", help: "Errors.", labelNames: ["peer"], registers });
errors.inc({ peer: undefined });
errors.inc({ peer: undefined });
errors.inc();
const drops = new client.Counter({ name: "drops", help: "Drops.", labelNames: ["peer"], registers });
drops.inc();
drops.inc({ peer: undefined });
drops.inc({ peer: undefined });
console.log((await registers[0].metrics()).split("\n").filter((line) => /^\w/.test(line)).join("\n"));
JS
shows node run.mjs <<'SEEN'
Value is not a valid number: Infinity
Value is not a valid number: 1
NaN is accepted
blocks Nan
errors{peer="undefined"} 3
drops 3
SEEN
