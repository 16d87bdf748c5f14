/**
 * What callers do in each of the processes that serve them, gathered and told to the others, so that bounds and rates hold
 * for the node: what each process decides by is at most two intervals old.
 */
import type { SharedUsage } from "../edge/edge.js";

/** How often a process tells of it, and hears of it. */
export const shareEveryMs = 100;

type Usage = SharedUsage["places"][number][1];

/** One of the processes. */
export interface UsageParty {
  hear(usage: SharedUsage): void;
}

export interface UsageSharing {
  join(party: UsageParty): void;
  /** Nothing is under way in it any more. */
  leave(party: UsageParty): void;
  take(from: UsageParty, usage: SharedUsage): void;
  /** Tells everybody what is new to him. */
  share(): void;
}

/** What is to be told to one of them. */
interface Pending {
  readonly changed: Set<string>;
  readonly charges: Map<string, number>;
  readonly shutOut: Set<string>;
}

export function createUsageSharing(): UsageSharing {
  const parties = new Map<UsageParty, { readonly places: Map<string, Usage>; pending: Pending }>();

  function othersOf(party: UsageParty) {
    return [...parties].flatMap(([other, state]) => (other === party ? [] : [state]));
  }

  function sumOf(states: readonly { readonly places: ReadonlyMap<string, Usage> }[], network: string): Usage {
    const sum = { connections: 0, requests: 0, streams: 0, bytes: 0 };
    for (const { places } of states) {
      const usage = places.get(network);
      if (usage !== undefined) {
        sum.connections += usage.connections;
        sum.requests += usage.requests;
        sum.streams += usage.streams;
        sum.bytes += usage.bytes;
      }
    }
    return sum;
  }

  return {
    join(party) {
      // Who comes anew hears of all there is.
      const changed = new Set([...parties.values()].flatMap(({ places }) => [...places.keys()]));
      parties.set(party, { places: new Map(), pending: { ...nothingPending(), changed } });
    },
    leave(party) {
      const networks = [...(parties.get(party)?.places.keys() ?? [])];
      for (const { pending } of othersOf(party)) {
        networks.forEach((network) => pending.changed.add(network));
      }
      parties.delete(party);
    },
    take(from, { places, charges, shutOut }) {
      const own = parties.get(from);
      for (const [network, usage] of own === undefined ? [] : places) {
        const isNothing = usage.connections + usage.requests + usage.streams + usage.bytes === 0;
        if (isNothing) {
          own!.places.delete(network);
        } else {
          own!.places.set(network, usage);
        }
      }
      for (const { pending } of othersOf(from)) {
        places.forEach(([network]) => pending.changed.add(network));
        charges.forEach(([network, n]) => pending.charges.set(network, (pending.charges.get(network) ?? 0) + n));
        shutOut.forEach((network) => pending.shutOut.add(network));
      }
    },
    share() {
      for (const [party, state] of parties) {
        const { changed, charges, shutOut } = state.pending;
        if (changed.size + charges.size + shutOut.size > 0) {
          state.pending = nothingPending();
          const others = othersOf(party);
          const places = [...changed].map((network) => [network, sumOf(others, network)] as const);
          party.hear({ places, charges: [...charges], shutOut: [...shutOut] });
        }
      }
    },
  };
}

function nothingPending(): Pending {
  return { changed: new Set(), charges: new Map(), shutOut: new Set() };
}
