/**
 * Compares this node's clock with the clocks of its peers. Peers reject signed times that are too far ahead, and such a
 * time would stop the network.
 */
import { maxAheadMs } from "../../chain/writer/blocks.js";

/** Limit on the lead in milliseconds: half of what peers accept, because their clocks may be off as well. */
const maxLeadMs = maxAheadMs / 2;

export function createNodeClock() {
  let peersMs: () => number | undefined = () => undefined;
  return {
    /**
     * Sets the source of the peers' time in Unix milliseconds. The source returns undefined while no peer's clock is
     * known.
     */
    compareWith(source: () => number | undefined): void {
      peersMs = source;
    },
    /**
     * Returns the reason not to sign or trust a time: it is too far ahead of the peers' clocks. Returns undefined if
     * the time is acceptable, or if no peer's clock is known.
     *
     * @param timeMs time to check in Unix milliseconds, in addition to this node's current time.
     */
    whyAhead(timeMs?: number): string | undefined {
      const [now, peers] = [Date.now(), peersMs()];
      if (peers === undefined || Math.max(now, timeMs ?? now) - peers <= maxLeadMs) {
        return undefined;
      }
      const isClockAhead = now - peers > maxLeadMs;
      const aheadS = Math.round(((isClockAhead ? now : timeMs!) - peers) / 1_000);
      return isClockAhead
        ? `This node's clock is ${aheadS} s ahead of its peers' clocks; the node produces no blocks and accepts no transactions until the clock is corrected.`
        : `The time of the latest block is ${aheadS} s ahead of the peers' clocks; the node produces no blocks until they reach it.`;
    },
  };
}
