/** This node's clock, beside those of its peers: what is signed with a time that they refuse stops the network. */
import { maxAheadMs } from "../../chain/writer/blocks.js";

/** The clock. */
export interface NodeClock {
  /** Is given what the peers' clocks show; undefined while none is known. */
  compareWith(peersMs: () => number | undefined): void;
  /**
   * Why a time must not be signed or believed: it is too far ahead of the peers' clocks. Where no peer's clock is known,
   * this node's own one counts.
   *
   * @param timeMs now, when left out.
   */
  whyAhead(timeMs?: number): string | undefined;
}

/** Half of what peers take, so that theirs may be wrong as well. */
const allowedMs = maxAheadMs / 2;

export function createNodeClock(): NodeClock {
  let peersMs: () => number | undefined = () => undefined;
  return {
    compareWith(given) {
      peersMs = given;
    },
    whyAhead(timeMs) {
      const [now, peers] = [Date.now(), peersMs()];
      if (peers === undefined || Math.max(now, timeMs ?? now) - peers <= allowedMs) {
        return undefined;
      }
      const isClock = now - peers > allowedMs;
      const aheadS = Math.round(((isClock ? now : timeMs!) - peers) / 1_000);
      return isClock
        ? `This node's clock is ${aheadS} s ahead of its peers' clocks; no block is made and no transaction taken before it is set right.`
        : `The time of the newest block is ${aheadS} s ahead of the peers' clocks; no block is made before they are there.`;
    },
  };
}
