/** Usage by address, or by IPv6 /64 prefix: in this process and in the other processes of this node. */
export interface Usage {
  connections: number;
  requests: number;
  streams: number;
  /** Bytes reserved for its requests and responses. */
  bytes: number;
}

/** Request or stream that occupies a slot. */
export interface Slot {
  readonly usage: AddressUsage;
  readonly isStream: boolean;
  /** Next and previous slot of the same address and kind. */
  newer: Slot | undefined;
  older: Slot | undefined;
  /** Aborts the request, and releases its slot. */
  giveWay(): void;
}

export interface AddressUsage extends Usage {
  /** Latest request and stream in flight in this process. */
  latestRequest: Slot | undefined;
  latestStream: Slot | undefined;
  /** Usage in all other processes of this node, as last reported. */
  elsewhere: Readonly<Usage>;
}

export type UsageByPrefix = readonly (readonly [prefix: string, usage: Readonly<Usage>])[];

/** Number of entries from which on the tracker removes those without usage. */
const minSweepEntries = 10_000;

const noUsage: Readonly<Usage> = Object.freeze({ connections: 0, requests: 0, streams: 0, bytes: 0 });

/** Usage with the values that were last reported to other processes. */
interface TrackedUsage extends AddressUsage {
  reported: Readonly<Usage>;
}

export class UsageTracker {
  private readonly entries = new Map<string, TrackedUsage>();
  private sweepFrom = minSweepEntries;

  /** Returns the usage of an address prefix. Returns the same object while any usage is above zero. */
  of(prefix: string): AddressUsage {
    return this.entryOf(prefix);
  }

  /** Returns the usage of every known address prefix. */
  all(): Iterable<AddressUsage> {
    return this.entries.values();
  }

  /** Returns the usages that changed since the last call. */
  drainChanged(): UsageByPrefix {
    const changed: [string, Readonly<Usage>][] = [];
    for (const [prefix, entry] of this.entries) {
      if (!isSame(entry, entry.reported)) {
        const { connections, requests, streams, bytes } = entry;
        entry.reported = { connections, requests, streams, bytes };
        changed.push([prefix, entry.reported]);
      }
    }
    return changed;
  }

  /** Receives the usage of addresses in other processes. */
  receive(usages: UsageByPrefix): void {
    for (const [prefix, usage] of usages) {
      this.entryOf(prefix).elsewhere = usage;
    }
  }

  private entryOf(prefix: string): TrackedUsage {
    let entry = this.entries.get(prefix);
    if (entry === undefined) {
      if (this.entries.size >= this.sweepFrom) {
        this.sweep();
      }
      entry = { ...noUsage, latestRequest: undefined, latestStream: undefined, elsewhere: noUsage, reported: noUsage };
      this.entries.set(prefix, entry);
    }
    return entry;
  }

  /** Removes entries without usage. Runs again when the remaining number has doubled. */
  private sweep(): void {
    for (const [prefix, entry] of this.entries) {
      if ([entry, entry.elsewhere, entry.reported].every((usage) => isSame(usage, noUsage))) {
        this.entries.delete(prefix);
      }
    }
    this.sweepFrom = Math.max(minSweepEntries, 2 * this.entries.size);
  }
}

function isSame(a: Readonly<Usage>, b: Readonly<Usage>): boolean {
  return a.connections === b.connections && a.requests === b.requests && a.streams === b.streams && a.bytes === b.bytes;
}
