import type { Config } from "../../config/config.js";

/**
 * Reasons for which a node does not accept transactions, or does not know the latest block of its network. `/health`,
 * `/readyz`, the command line and the pages show them, each with the remedy if the operator has one.
 */
export const readinessReasons = {
  stopping: () => "The node is shutting down.",
  notWriter: (state: string | undefined) => state ?? "The node is not the writer of its database.",
  booting: () => "The node is booting.",
  /** The database is unavailable, rejects writes or is corrupt. */
  chainFailed: (error: string | undefined) => error ?? "The chain has failed.",
  stalled: () => "The main loop is dead.",
  forked: (fork: string) =>
    `${fork} That is this node's own key, so it produces no blocks and accepts no transactions.`,
  noNetwork: ({ role }: Pick<Config, "role">) =>
    role === "writer"
      ? "The node belongs to no network: start it with --genesis FILE, or run gatehouse join URL."
      : "The writer of the database belongs to no network yet.",
  noChain: () => "The node has no chain yet; it loads a snapshot of one, or has failed to.",
  uncalledPeers: () => "The node has not called its peers yet.",
  missingBlocks: (number: bigint, latest: bigint, whyNoPeer: string | undefined) =>
    `The node has block ${number}; its network has block ${latest}.${whyNoPeer === undefined ? "" : ` ${whyNoPeer}`}`,
  unreportedBlock: (whyNoPeer = "Add a peer: gatehouse peers add URL") =>
    `No peer has reported the latest block. ${whyNoPeer}`,
  restoredAlone: (number: bigint) =>
    "The node produces no blocks yet: its database was restored, and no peer has reported the latest block. If the node that " +
    `was backed up is gone, and no node has a block after ${number}, start this node with --recover; otherwise add a peer.`,
  emptyAlone: () =>
    "The node produces no blocks yet: its database has none, and no peer has confirmed that none exist. Start this node with " +
    "--recover if the network is new, or add a peer that has its blocks.",
  unconfirmedBlock: (number: bigint) =>
    `The node produces no blocks yet: no verified peer that has block ${number} has reported the latest block. If no newer ` +
    "block exists anywhere, start this node with --recover.",
} as const;
