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
export type UsageByNetwork = readonly (readonly [network: string, usage: Usage])[];

export interface UsageTracker {
  /** Returns the usage of an address prefix. Returns the same object while any usage is above zero. */
  of(network: string): AddressUsage;
  /** Returns the usages that changed since the last call. */
  takeChanged(): UsageByNetwork;
  /** Receives the usage of addresses in other processes. */
  hear(usages: UsageByNetwork): void;
}

/** Number of entries from which on the tracker removes those without usage. */
const manyAccounts = 10_000;

const nothing: Usage = Object.freeze({ connections: 0, requests: 0, streams: 0, bytes: 0 });

/** Usage with the values that were last reported to other processes. */
interface KeptAccount extends AddressUsage {
  told: Usage;
}

export function createUsageTracker(): UsageTracker {
  const accounts = new Map<string, KeptAccount>();
  let sweepFrom = manyAccounts;

  /** Removes entries without usage. Runs again when the remaining number has doubled. */
  function sweep(): void {
    for (const [network, account] of accounts) {
      if (isNothing(account) && isNothing(account.elsewhere) && isNothing(account.told)) {
        accounts.delete(network);
      }
    }
    sweepFrom = Math.max(manyAccounts, 2 * accounts.size);
  }

  function accountOf(network: string): KeptAccount {
    let account = accounts.get(network);
    if (account === undefined) {
      if (accounts.size >= sweepFrom) {
        sweep();
      }
      account = { ...nothing, elsewhere: nothing, told: nothing };
      accounts.set(network, account);
    }
    return account;
  }

  return {
    of: accountOf,
    takeChanged() {
      const changed: [string, Usage][] = [];
      for (const [network, account] of accounts) {
        if (!isSame(account, account.told)) {
          const { connections, requests, streams, bytes } = account;
          account.told = { connections, requests, streams, bytes };
          changed.push([network, account.told]);
        }
      }
      return changed;
    },
    hear(usages) {
      for (const [network, usage] of usages) {
        accountOf(network).elsewhere = isNothing(usage) ? nothing : usage;
      }
    },
  };
}

function isSame(a: Usage, b: Usage): boolean {
  return a.connections === b.connections && a.requests === b.requests && a.streams === b.streams && a.bytes === b.bytes;
}

function isNothing(usage: Usage): boolean {
  return usage === nothing || isSame(usage, nothing);
}
