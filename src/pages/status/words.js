/** Texts of /status: formats values from responses of the node, without access to the page. */

/** Formats seconds in the largest fitting unit and the next smaller one, such as `2 h 5 min`. */
export function duration(seconds) {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  return units
    .slice(first, first + 2)
    .map(([unit, size], i) => [Math.floor((i === 0 ? seconds : seconds % units[first][1]) / size), unit])
    .filter(([count]) => count > 0)
    .map((part) => part.join(" "))
    .join(" ");
}

export const ago = (ms) => (ms === null ? "never" : `${duration(Math.max(0, Date.now() - ms) / 1000)} ago`);

/** Returns the reasons for the status as sentences. */
export function reasonsOf({ status, subsystems, main_loop: loop, mempool_size: pending, accepting }) {
  const failed = Object.entries(subsystems)
    .filter(([, state]) => state.status === "failed")
    .map(([name, state]) => `${name}: ${state.lastError?.message ?? "failed"}`);
  if (status === "dormant") return [subsystems.main_loop.extra?.reason ?? "The node has no peers.", ...failed];
  const reasons = status === "failing" || status === "degraded" ? failed : [];
  if (status === "failing" && loop.exited) reasons.push(`The main loop has exited: ${loop.exit_reason}`);
  else if (status === "failing" && reasons.length === 0 && pending !== null)
    reasons.push(`The main loop has not ticked for ${duration(loop.heartbeat_age_s ?? 0)}.`);
  if (pending === null && reasons.length === 0) reasons.push("Pending transactions cannot be counted.");
  if (status === "ok" && !accepting) reasons.push(subsystems.main_loop.extra?.reason ?? "The node is not synced.");
  return reasons;
}

/** Returns the reason for the status of a subsystem. For a healthy subsystem it is the last error with its age. */
export function reasonOf({ status, lastError, extra }) {
  if (status === "failed") return lastError?.message ?? "";
  if (extra?.reason !== undefined) return extra.reason;
  return lastError === null ? "" : `${ago(lastError.at)}: ${lastError.message}`;
}

export function bootLine({ complete, current, steps_ready, steps_failed, steps_skipped, steps_total }) {
  return `Boot ${complete ? "complete" : `at ${current}`}: ${steps_ready} ready, ${steps_failed} failed, ${steps_skipped} skipped of ${steps_total} steps.`;
}

export function loopLine({ exited, exit_reason, heartbeat_age_s, iterations_total }) {
  if (exited) return `Main loop exited: ${exit_reason}`;
  if (heartbeat_age_s === null) return "Main loop: no tick yet.";
  return `Main loop: ${iterations_total} ticks, the last ${duration(heartbeat_age_s)} ago.`;
}

export function syncLine({ block, targetBlock, blocks_per_s, left_s }) {
  return `Catching up: block ${block} of ${targetBlock}, ${blocks_per_s} a second${left_s === null ? "" : `, ${duration(left_s)} left`}.`;
}

/** Compares the last known value with the first one, and adds the range if the values differ. */
export function changeLine(values, span) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return "Nothing to compare with yet.";
  const change = known.at(-1) - known[0];
  const [min, max] = [Math.min(...known), Math.max(...known)];
  if (min === max) return `No change in the last ${span}.`;
  const comparison = change === 0 ? "The same as" : `${Math.abs(change)} ${change > 0 ? "more" : "fewer"} than`;
  return `${comparison} ${span} ago, between ${min} and ${max}.`;
}

/** Sums the time of each status, longest first. */
export function timeByStatus(spans) {
  const totals = new Map();
  for (const { status, ms } of spans) totals.set(status, (totals.get(status) ?? 0) + ms);
  return [...totals]
    .sort(([, a], [, b]) => b - a)
    .map(([status, ms]) => `${status} for ${duration(ms / 1000)}`)
    .join(", ");
}
