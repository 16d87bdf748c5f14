/** What each address, or each /64 of IPv6, has at present. */
export interface Account {
  /** Requests under way. */
  requests: number;
  /** Open streams. */
  streams: number;
  /** Bytes that its requests and answers hold. */
  bytes: number;
}

export interface Accounts {
  /** The account of an address; for as long as it has anything, the same one. */
  of(network: string): Account;
}

/** From so many on, those that have nothing are forgotten. */
const manyAccounts = 10_000;

export function createAccounts(): Accounts {
  const accounts = new Map<string, Account>();
  let sweepFrom = manyAccounts;

  /** Next when there are twice as many as stay. */
  function sweep(): void {
    for (const [network, { requests, streams, bytes }] of accounts) {
      if (requests + streams + bytes === 0) {
        accounts.delete(network);
      }
    }
    sweepFrom = Math.max(manyAccounts, 2 * accounts.size);
  }

  return {
    of(network) {
      let account = accounts.get(network);
      if (account === undefined) {
        if (accounts.size >= sweepFrom) {
          sweep();
        }
        account = { requests: 0, streams: 0, bytes: 0 };
        accounts.set(network, account);
      }
      return account;
    },
  };
}
