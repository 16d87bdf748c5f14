/**
 * Usage by clients in each process that serves them. The usage is shared among the processes, so that limits and rates
 * apply to the node as a unit. Each process decides by data that is at most two intervals old.
 */
import type { SharedUsage } from "../edge/edge.js";

/** Interval in milliseconds at which a process reports its usage and receives the usage of the others. */
export const shareEveryMs = 100;

type Usage = SharedUsage["usages"][number][1];

/** Process that takes part in the sharing. */
export interface UsageMember {
  receive(usage: SharedUsage): void;
}

export function createUsageSharing() {
  const members = new Map<UsageMember, { readonly usages: Map<string, Usage>; pending: Pending }>();

  function othersOf(member: UsageMember) {
    return [...members].flatMap(([other, state]) => (other === member ? [] : [state]));
  }

  function sumOf(states: readonly { readonly usages: ReadonlyMap<string, Usage> }[], prefix: string): Usage {
    const usages = states.flatMap(({ usages }) => usages.get(prefix) ?? []);
    const sum = (name: keyof Usage): number => usages.reduce((total, usage) => total + usage[name], 0);
    return { connections: sum("connections"), requests: sum("requests"), streams: sum("streams"), bytes: sum("bytes") };
  }

  return {
    join(member: UsageMember): void {
      // A new process receives the usage of all others.
      const changed = new Set([...members.values()].flatMap(({ usages }) => [...usages.keys()]));
      members.set(member, { usages: new Map(), pending: { ...createPending(), changed } });
    },
    /** Removes a process that has no requests in progress any more. */
    leave(member: UsageMember): void {
      const prefixes = [...(members.get(member)?.usages.keys() ?? [])];
      for (const { pending } of othersOf(member)) {
        prefixes.forEach((prefix) => pending.changed.add(prefix));
      }
      members.delete(member);
    },
    report(from: UsageMember, { usages, charges, banned }: SharedUsage): void {
      const reporter = members.get(from);
      for (const [prefix, usage] of reporter === undefined ? [] : usages) {
        const isNothing = usage.connections + usage.requests + usage.streams + usage.bytes === 0;
        if (isNothing) {
          reporter!.usages.delete(prefix);
        } else {
          reporter!.usages.set(prefix, usage);
        }
      }
      for (const { pending } of othersOf(from)) {
        usages.forEach(([prefix]) => pending.changed.add(prefix));
        charges.forEach(([prefix, n]) => pending.charges.set(prefix, (pending.charges.get(prefix) ?? 0) + n));
        banned.forEach((prefix) => pending.banned.add(prefix));
      }
    },
    /** Sends each process the changes that it has not received yet. */
    share(): void {
      for (const [member, state] of members) {
        const { changed, charges, banned } = state.pending;
        if (changed.size + charges.size + banned.size > 0) {
          state.pending = createPending();
          const others = othersOf(member);
          const usages = [...changed].map((prefix) => [prefix, sumOf(others, prefix)] as const);
          member.receive({ usages, charges: [...charges], banned: [...banned] });
        }
      }
    },
  };
}

type Pending = ReturnType<typeof createPending>;

/** Creates the list of changes that one process has not received yet. */
function createPending() {
  return { changed: new Set<string>(), charges: new Map<string, number>(), banned: new Set<string>() };
}
