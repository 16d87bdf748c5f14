/** Usage by address, or by IPv6 /64 prefix: in this process and in the other processes of this node. */

/** Usage of an address. */
export interface Usage {
  /** Open connections. */
  readonly connections: number;
  /** Requests in flight. */
  readonly requests: number;
  /** Open streams. */
  readonly streams: number;
  /** Bytes reserved for its requests and responses. */
  readonly bytes: number;
}

/** Current usage in this process. */
export interface AddressUsage extends Usage {
  connections: number;
  requests: number;
  streams: number;
  bytes: number;
  /** Usage in all other processes of this node, as last reported. */
  elsewhere: Usage;
}

/** Usage by address prefix. */
export type UsageByPrefix = readonly (readonly [prefix: string, usage: Usage])[];

export interface UsageTracker {
  /** Returns the usage of an address prefix. Returns the same object while any usage is above zero. */
  of(prefix: string): AddressUsage;
  /** Returns the usages that changed since the last call. */
  drainChanged(): UsageByPrefix;
  /** Receives the usage of addresses in other processes. */
  receive(usages: UsageByPrefix): void;
}

/** Number of entries from which on the tracker removes those without usage. */
const minSweepEntries = 10_000;

const noUsage: Usage = Object.freeze({ connections: 0, requests: 0, streams: 0, bytes: 0 });

/** Usage with the values that were last reported to other processes. */
interface TrackedUsage extends AddressUsage {
  reported: Usage;
}

export function createUsageTracker(): UsageTracker {
  const entries = new Map<string, TrackedUsage>();
  let sweepFrom = minSweepEntries;

  /** Removes entries without usage. Runs again when the remaining number has doubled. */
  function sweep(): void {
    for (const [prefix, entry] of entries) {
      if (isZero(entry) && isZero(entry.elsewhere) && isZero(entry.reported)) {
        entries.delete(prefix);
      }
    }
    sweepFrom = Math.max(minSweepEntries, 2 * entries.size);
  }

  function entryOf(prefix: string): TrackedUsage {
    let entry = entries.get(prefix);
    if (entry === undefined) {
      if (entries.size >= sweepFrom) {
        sweep();
      }
      entry = { ...noUsage, elsewhere: noUsage, reported: noUsage };
      entries.set(prefix, entry);
    }
    return entry;
  }

  return {
    of: entryOf,
    drainChanged() {
      const changed: [string, Usage][] = [];
      for (const [prefix, entry] of entries) {
        if (!isSame(entry, entry.reported)) {
          const { connections, requests, streams, bytes } = entry;
          entry.reported = { connections, requests, streams, bytes };
          changed.push([prefix, entry.reported]);
        }
      }
      return changed;
    },
    receive(usages) {
      for (const [prefix, usage] of usages) {
        entryOf(prefix).elsewhere = isZero(usage) ? noUsage : usage;
      }
    },
  };
}

function isSame(a: Usage, b: Usage): boolean {
  return a.connections === b.connections && a.requests === b.requests && a.streams === b.streams && a.bytes === b.bytes;
}

function isZero(usage: Usage): boolean {
  return usage === noUsage || isSame(usage, noUsage);
}
