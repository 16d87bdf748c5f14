import { hex32 } from "../../base/crypto/hash.js";

/**
 * Reasons for which a node does not use a peer, or sends it no blocks. `/peerlist`, the address book, the command line
 * and the pages show them, each with the remedy if the operator has one.
 */
export const peerReasons = {
  notCalled: () => "The peer has not responded yet.",
  /** The last call has failed. */
  unreachable: (error: string) => error,
  changedKey: (proved: string, before: string) =>
    `The peer proves the identity ${proved}, and no longer ${before}; the next handshake decides.`,
  /** The peer's own statements, or its address, are invalid. */
  invalidStatement: (error: string) => error,
  rejectedThisNode: (error: string) => `The peer rejected this node: ${error}`,
  /** @param reported hash of the peer's genesis, which may be any text. */
  otherNetwork: (reported: string, own: string) =>
    `The peer belongs to another network: its genesis is ${hex32.test(reported) ? reported : "no hash"}, and this node's ` +
    `is ${own}. To be in that network, run gatehouse join URL --data-dir NEW with the URL of one of its nodes.`,
  ownAddress: () => "The peer URL is this node's own address; add a different one.",
  unexpectedKey: (endpoint: string, proved: string, expected: string, isFromFile: boolean) =>
    `The peer proved the identity ${proved}, and not the expected ${expected}. If the new one is right, ` +
    (isFromFile
      ? "correct the peers file and restart this node."
      : `run gatehouse peers add ${endpoint} --identity ${proved} on this node.`),
  otherAddress: (announced: string) =>
    `It announces the address ${announced}, which differs from the address it was found at.`,
  heldIdentity: (holder: string) => `Its identity belongs to the peer at ${holder}, which responds.`,
  movedIdentity: (holder: string) => `Its identity has moved to ${holder}.`,
  stalled: (error: string) => error,
  /** A block or a part of a snapshot is invalid. */
  invalidData: (error: string) => error,
  missingBlock: (number: bigint) => `It did not send block ${number}, which it reported to have.`,
  refusedBlocks: (error: string) => `It refused to send blocks: ${error}`,
  /** @param endpoint address of this node, and its key: the other operator needs both. */
  unlistedThere: (endpoint: string, key: string) =>
    `It sends blocks to listed followers only: ask its operator to run gatehouse peers add ${endpoint} --identity ${key} ` +
    "on that node.",
  /** @param endpoint address of the peer; undefined if it is unknown. */
  unlistedHere: (endpoint: string | undefined, key: string) =>
    "The peer is not a listed follower, so this node sends it no blocks. If it may follow, run gatehouse peers add " +
    `${endpoint ?? "URL"} --identity ${key} on this node.`,
} as const;
