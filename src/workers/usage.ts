/**
 * Usage by clients in each process that serves them. The usage is shared among the processes, so that limits and rates
 * apply to the node as a unit. Each process decides by data that is at most two intervals old.
 */
import type { SharedUsage } from "../edge/edge.js";

/** Interval in milliseconds at which a process reports its usage and receives the usage of the others. */
export const shareEveryMs = 100;

type Usage = SharedUsage["places"][number][1];

/** Process that takes part in the sharing. */
export interface UsageParty {
  hear(usage: SharedUsage): void;
}

export interface UsageSharing {
  join(party: UsageParty): void;
  /** Removes a process that has no requests in progress any more. */
  leave(party: UsageParty): void;
  take(from: UsageParty, usage: SharedUsage): void;
  /** Sends each process the changes that it has not received yet. */
  share(): void;
}

/** Changes that one process has not received yet. */
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
      // A new process receives the usage of all others.
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
