/** Events that the modules of a node publish to each other, in whichever order the modules are created. */
import type { HistoryPoint } from "../../metrics/history.js";

export interface NodeEvents {
  /** New block that was applied and is in the database. Published by the chain. */
  readonly blockApplied: { readonly number: bigint };
  /**
   * New latest block that a read-only node has found in the database. `isReset` is true if the node skipped the blocks
   * in between. Published by the chain.
   */
  readonly headFound: { readonly isReset: boolean };
  /** Change of the latest block in the parent process. Published by the link to that process. */
  readonly blockReported: undefined;
  /** Permanent rejection of a transaction, with its reason. Published by the mempool. */
  readonly transactionRejected: { readonly hash: string; readonly reason: string };
  /**
   * New signed head: an authority stated again that the latest block is its latest. Published by the modules that
   * receive signed heads.
   */
  readonly headStated: undefined;
  /**
   * Change of write access to the database. `problem` is the public reason while writes fail, such as the engine's error
   * code; undefined once they succeed. Published by the chain.
   */
  readonly writesChanged: { readonly problem: string | undefined };
  /**
   * Change of the disk of a part of the database. `problem` is the error code of the system while the disk cannot be
   * read; undefined once it can.
   */
  readonly diskChanged: { readonly part: "chain" | "mempool"; readonly problem: string | undefined };
  /** Message about all known corruption in the database; undefined once none is left. */
  readonly corruptionChanged: { readonly message: string | undefined };
  /** State report of the external consensus process, with its error if it failed. Published by the control service. */
  readonly consensusReported: { readonly isReady: boolean; readonly error: string | undefined };
  /** Peer that proved its identity. Published by the network. */
  readonly peerVerified: { readonly endpoint: string };
  /** New point in the history of the last day. Published by the history. */
  readonly historyTaken: HistoryPoint;
  /** Request of the operator to reload files that may have changed. Published by the code that started the node. */
  readonly reloadRequested: undefined;
}

/**
 * Creates a bus without listeners. `Events` maps each name to the type of its event.
 *
 * @param onError called with the error that a listener threw. It reaches neither the other listeners nor the caller.
 */
export function createBus<Events extends object>(onError: (name: keyof Events, error: unknown) => void) {
  const listeners: { [Name in keyof Events]?: ((event: Events[Name]) => void)[] } = {};
  return {
    /** Registers a listener for all later events of this name. */
    on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): void {
      (listeners[name] ??= []).push(listener);
    },
    /** Calls all listeners in the order of registration before it returns. */
    emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
      for (const listener of listeners[name] ?? []) {
        try {
          listener(event);
        } catch (error) {
          onError(name, error);
        }
      }
    },
  };
}
