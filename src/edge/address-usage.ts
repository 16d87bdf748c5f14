/** What each address, or each /64 of IPv6, has at present: here, and in the other processes of this node. */

/** What an address has. */
export interface Usage {
  /** Open connections. */
  readonly connections: number;
  /** Requests under way. */
  readonly requests: number;
  /** Open streams. */
  readonly streams: number;
  /** Bytes that its requests and answers hold. */
  readonly bytes: number;
}

/** What it has here, as it changes. */
export interface AddressUsage extends Usage {
  connections: number;
  requests: number;
  streams: number;
  bytes: number;
  /** What it had in all other processes of this node when they last told of it. */
  elsewhere: Usage;
}

/** Networks, each with what it has. */
export type UsageByNetwork = readonly (readonly [network: string, usage: Usage])[];

export interface UsageTracker {
  /** The account of an address; for as long as it has anything, the same one. */
  of(network: string): AddressUsage;
  /** What the accounts hold that hold something else than when this was last asked. */
  takeChanged(): UsageByNetwork;
  /** Hears what addresses have elsewhere. */
  hear(usages: UsageByNetwork): void;
}

/** From so many on, those that have nothing are forgotten. */
const manyAccounts = 10_000;

const nothing: Usage = Object.freeze({ connections: 0, requests: 0, streams: 0, bytes: 0 });

/** An account, and what was last told of it. */
interface KeptAccount extends AddressUsage {
  told: Usage;
}

export function createUsageTracker(): UsageTracker {
  const accounts = new Map<string, KeptAccount>();
  let sweepFrom = manyAccounts;

  /** Next when there are twice as many as stay. */
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
