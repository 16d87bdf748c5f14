/**
 * Usage by clients in each process that serves them. The usage is shared among the processes, so that limits and rates
 * apply to the node as a unit. Each process decides by data that is at most two intervals old.
 */
import type { SharedUsage } from "../edge/edge.js";

/** Interval in milliseconds at which a process reports its usage and receives the usage of the others. */
export const shareEveryMs = 100;

type Usage = SharedUsage["usages"][number][1];

/** Process that takes part in the sharing. */
export interface UsageParty {
  receive(usage: SharedUsage): void;
}

export interface UsageSharing {
  join(party: UsageParty): void;
  /** Removes a process that has no requests in progress any more. */
  leave(party: UsageParty): void;
  report(from: UsageParty, usage: SharedUsage): void;
  /** Sends each process the changes that it has not received yet. */
  share(): void;
}

/** Changes that one process has not received yet. */
interface Pending {
  readonly changed: Set<string>;
  readonly charges: Map<string, number>;
  readonly banned: Set<string>;
}

export function createUsageSharing(): UsageSharing {
  const parties = new Map<UsageParty, { readonly usages: Map<string, Usage>; pending: Pending }>();

  function othersOf(party: UsageParty) {
    return [...parties].flatMap(([other, state]) => (other === party ? [] : [state]));
  }

  function sumOf(states: readonly { readonly usages: ReadonlyMap<string, Usage> }[], network: string): Usage {
    const sum = { connections: 0, requests: 0, streams: 0, bytes: 0 };
    for (const { usages } of states) {
      const usage = usages.get(network);
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
      const changed = new Set([...parties.values()].flatMap(({ usages }) => [...usages.keys()]));
      parties.set(party, { usages: new Map(), pending: { ...nothingPending(), changed } });
    },
    leave(party) {
      const networks = [...(parties.get(party)?.usages.keys() ?? [])];
      for (const { pending } of othersOf(party)) {
        networks.forEach((network) => pending.changed.add(network));
      }
      parties.delete(party);
    },
    report(from, { usages, charges, banned }) {
      const own = parties.get(from);
      for (const [network, usage] of own === undefined ? [] : usages) {
        const isNothing = usage.connections + usage.requests + usage.streams + usage.bytes === 0;
        if (isNothing) {
          own!.usages.delete(network);
        } else {
          own!.usages.set(network, usage);
        }
      }
      for (const { pending } of othersOf(from)) {
        usages.forEach(([network]) => pending.changed.add(network));
        charges.forEach(([network, n]) => pending.charges.set(network, (pending.charges.get(network) ?? 0) + n));
        banned.forEach((network) => pending.banned.add(network));
      }
    },
    share() {
      for (const [party, state] of parties) {
        const { changed, charges, banned } = state.pending;
        if (changed.size + charges.size + banned.size > 0) {
          state.pending = nothingPending();
          const others = othersOf(party);
          const usages = [...changed].map((network) => [network, sumOf(others, network)] as const);
          party.receive({ usages, charges: [...charges], banned: [...banned] });
        }
      }
    },
  };
}

function nothingPending(): Pending {
  return { changed: new Set(), charges: new Map(), banned: new Set() };
}
