/** Shows evidence of forks that the node stores, and peers whose latest block differs from the block of this node. */
import type { BlockResponse, InfoResponse, PeerResponse, SubsystemsResponse } from "../responses.js";
import { column, dataTable, fromList } from "../table/data-table.js";
import { h } from "../dom.js";
import { NodeError } from "../node.js";
import { blockLink, facts, note, section, shortHash, untrusted } from "../parts.js";
import type { View, ViewContext } from "../view.js";

/** Latest block of a peer, compared with the block of the same number on this node. */
interface ComparedBlock {
  readonly peer: PeerResponse;
  readonly number: number;
  readonly peerHash: string;
  /** Undefined if this node does not have the block yet. */
  readonly localHash: string | undefined;
}

export async function viewForks({ node, signal }: ViewContext): Promise<View> {
  const [{ subsystems }, { peerlist }] = await Promise.all([
    node.fetchJson<SubsystemsResponse>("health/subsystems", signal),
    node.fetchJson<InfoResponse>("info", signal),
  ]);
  const chain = subsystems["chain"];
  const hashes = new Map<number, string | undefined>();
  const rows: ComparedBlock[] = [];
  for (const peer of peerlist) {
    const { block: number, block_hash: peerHash } = peer.sync;
    if (number !== null && peerHash !== null && number > 0) {
      if (!hashes.has(number)) {
        hashes.set(number, await hashOf(number));
      }
      rows.push({ peer, number, peerHash, localHash: hashes.get(number) });
    }
  }
  const isChainFailed = chain?.status === "failed";
  return {
    title: "Forks",
    contents: [
      h(
        "p",
        {},
        "Two different blocks with the same number, both signed by one authority, prove a fork. A node that finds such evidence stores it, and reports its chain as failed until an operator resolves it.",
      ),
      facts({
        "Chain of this node": h("strong", { class: isChainFailed ? "bad" : "good" }, chain?.status ?? "unknown"),
        Reason:
          isChainFailed && chain.lastError?.message !== undefined
            ? untrusted(chain.lastError.message, 2_000)
            : undefined,
      }),
      section(
        "Blocks of peers",
        await dataTable<ComparedBlock>({
          id: "forks",
          label: "Blocks of peers",
          columns: [
            {
              name: "Peer",
              cell: ({ peer }) => untrusted(peer.connection.string, 300),
              csv: ({ peer }) => peer.connection.string,
            },
            column("Block", "number", blockLink),
            { name: "Result", cell: resultOf, csv: (row) => resultOf(row).textContent },
            column("Hash of the peer", "peerHash", shortHash),
            column("Hash here", "localHash", (hash) => hash && shortHash(hash)),
          ],
          empty: "No peer has reported a block.",
          load: fromList(rows),
        }),
        note("Reports of peers are not signed: a different hash is a reason to investigate, but no evidence."),
      ),
    ],
  };

  /** Returns the hash of a block on this node; undefined if the node does not have the block. */
  async function hashOf(number: number): Promise<string | undefined> {
    try {
      return (await node.fetchJson<BlockResponse>(`chain/blocks/${number}`, signal)).hash;
    } catch (error) {
      if (error instanceof NodeError && error.reason !== "UNREACHABLE") {
        return undefined;
      }
      throw error;
    }
  }
}

function resultOf({ peerHash, localHash }: ComparedBlock): HTMLElement {
  return localHash === undefined
    ? h("span", { class: "dim" }, "not here yet")
    : localHash.toLowerCase() === peerHash.toLowerCase()
      ? h("span", { class: "good" }, "the same")
      : h("span", { class: "bad" }, "differs");
}
