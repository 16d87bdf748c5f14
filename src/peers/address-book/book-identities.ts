/** An identity is at one place: who may hold it where, and what becomes of its last place when it moves. */
import type { BookEntries } from "./book-entries.js";
import type { ProvenPeer } from "./status.js";
import { type BookEntry, isOperators } from "./peer.js";

export interface BookIdentities {
  /** Why an identity cannot be that of this endpoint: another live one holds it. */
  whyHeldElsewhere(identity: string, endpoint: string): string | undefined;
  /** Why what was proved at an entry's endpoint does not count. */
  whyRefused(entry: BookEntry, proven: ProvenPeer): string | undefined;
  /** Takes the identity from the endpoint that held it, if that is another one. */
  moveTo(endpoint: string, identity: string): void;
}

export function createBookIdentities(entries: BookEntries, ownIdentity: string): BookIdentities {
  function whyHeldElsewhere(identity: string, endpoint: string): string | undefined {
    const holder = entries.holderOf(identity);
    const isElsewhere = holder !== undefined && holder.endpoint !== endpoint && holder.announced !== endpoint;
    return isElsewhere && holder.online ? `Its identity is held by ${holder.endpoint}, which answers.` : undefined;
  }

  return {
    whyHeldElsewhere,
    whyRefused(entry, { identity, announced }) {
      if (identity === ownIdentity) {
        return "It is this node itself.";
      }
      if (entry.expectedIdentity !== undefined && entry.expectedIdentity !== identity) {
        return `The peer proved to be ${identity}, which is not the identity expected of it.`;
      }
      if (announced !== entry.endpoint && !isOperators(entry)) {
        return `It names itself ${announced}, and not as it was found.`;
      }
      return whyHeldElsewhere(identity, entry.endpoint);
    },
    moveTo(endpoint, identity) {
      const holder = entries.holderOf(identity);
      if (holder === undefined || holder.endpoint === endpoint) {
        return;
      }
      if (isOperators(holder)) {
        const message = `Its identity has moved to ${endpoint}.`;
        entries.put({ ...holder, verifiedMs: undefined, handshaken: false, message });
      } else {
        entries.forget(holder.endpoint);
      }
    },
  };
}
