/** Assigns each identity to one endpoint, and moves it if the peer moves. */
import type { BookEntries } from "./book-entries.js";
import type { ProvenPeer } from "./status.js";
import { type BookEntry, isFromOperator } from "./peer.js";

export interface BookIdentities {
  /** Returns an error message if another peer that is online holds the identity; otherwise undefined. */
  findIdentityConflict(identity: string, endpoint: string): string | undefined;
  /** Returns an error message if the proof of a peer does not match its entry; otherwise undefined. */
  findRejectionReason(entry: BookEntry, proven: ProvenPeer): string | undefined;
  /** Removes the identity from any other endpoint that holds it. */
  moveTo(endpoint: string, identity: string): void;
}

export function createBookIdentities(entries: BookEntries, ownIdentity: string): BookIdentities {
  function findIdentityConflict(identity: string, endpoint: string): string | undefined {
    const holder = entries.holderOf(identity);
    const isElsewhere = holder !== undefined && holder.endpoint !== endpoint && holder.announced !== endpoint;
    return isElsewhere && holder.online
      ? `Its identity belongs to the peer at ${holder.endpoint}, which responds.`
      : undefined;
  }

  return {
    findIdentityConflict,
    findRejectionReason(entry, { identity, announced }) {
      if (identity === ownIdentity) {
        return "The peer URL is this node's own address; add a different one.";
      }
      if (entry.expectedIdentity !== undefined && entry.expectedIdentity !== identity) {
        return `The peer proved the identity ${identity}, which is not the expected one.`;
      }
      if (announced !== entry.endpoint && !isFromOperator(entry)) {
        return `It announces the address ${announced}, which differs from the address it was found at.`;
      }
      return findIdentityConflict(identity, entry.endpoint);
    },
    moveTo(endpoint, identity) {
      const holder = entries.holderOf(identity);
      if (holder === undefined || holder.endpoint === endpoint) {
        return;
      }
      if (isFromOperator(holder)) {
        const message = `Its identity has moved to ${endpoint}.`;
        entries.put({ ...holder, verifiedMs: undefined, handshaken: false, message });
      } else {
        entries.remove(holder.endpoint);
      }
    },
  };
}
