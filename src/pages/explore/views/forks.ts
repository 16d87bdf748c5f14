/** Shows evidence of forks: the node's own, and peers whose block differs from this node's. */
import type { BlockAnswer, InfoAnswer, PeerAnswer, SubsystemsAnswer } from "../answers.js";
import { dataTable, fromList } from "../table/data-table.js";
import { h } from "../dom.js";
import { NodeError } from "../node.js";
import { blockLink, facts, given, note, section, shortHash } from "../parts.js";
import type { Looking, View } from "../view.js";

/** Peer at a block, with this node's hash of the same block; undefined if this node does not have the block yet. */
interface Compared {
  readonly peer: PeerAnswer;
  readonly number: number;
  readonly theirs: string;
  readonly ours: string | undefined;
}

export async function viewForks({ node, signal }: Looking): Promise<View> {
  const [{ subsystems }, { peerlist }] = await Promise.all([
    node.ask<SubsystemsAnswer>("health/subsystems", signal),
    node.ask<InfoAnswer>("info", signal),
  ]);
  const chain = subsystems["chain"];
  const hashes = new Map<number, string | undefined>();
  const rows: Compared[] = [];
  for (const peer of peerlist) {
    const { block: number, block_hash: theirs } = peer.sync;
    if (number !== null && theirs !== null && number > 0) {
      if (!hashes.has(number)) {
        hashes.set(number, await hashOf(number));
      }
      rows.push({ peer, number, theirs, ours: hashes.get(number) });
    }
  }
  const isChainFailed = chain?.status === "failed";
  return {
    title: "Forks",
    contents: [
      h(
        "p",
        {},
        "Two different blocks of one number, both signed by one authority, prove a fork. A node that finds such evidence stores it, and reports its chain as failed until an operator resolves it.",
      ),
      facts({
        "Chain of this node": h("strong", { class: isChainFailed ? "bad" : "good" }, chain?.status ?? "unknown"),
        Reason:
          isChainFailed && chain.lastError?.message !== undefined ? given(chain.lastError.message, 2_000) : undefined,
      }),
      section(
        "Blocks of peers",
        await dataTable<Compared>({
          id: "forks",
          label: "Blocks of peers",
          columns: [
            {
              name: "Peer",
              cell: ({ peer }) => given(peer.connection.string, 300),
              csv: ({ peer }) => peer.connection.string,
            },
            { name: "Block", cell: ({ number }) => blockLink(number), csv: ({ number }) => number },
            { name: "Result", cell: resultOf, csv: (row) => resultOf(row).textContent },
            { name: "Hash of the peer", cell: ({ theirs }) => shortHash(theirs), csv: ({ theirs }) => theirs },
            {
              name: "Hash here",
              cell: ({ ours }) => (ours === undefined ? "" : shortHash(ours)),
              csv: ({ ours }) => ours,
            },
          ],
          empty: "No peer has reported a block.",
          load: fromList(rows),
        }),
        note("A peer’s report is not signed: another hash is a reason to look, and no evidence."),
      ),
    ],
  };

  async function hashOf(number: number): Promise<string | undefined> {
    try {
      return (await node.ask<BlockAnswer>(`chain/blocks/${number}`, signal)).hash;
    } catch (error) {
      if (error instanceof NodeError && error.reason !== "UNREACHABLE") {
        return undefined;
      }
      throw error;
    }
  }
}

function resultOf({ theirs, ours }: Compared): HTMLElement {
  return ours === undefined
    ? h("span", { class: "dim" }, "not here yet")
    : ours.toLowerCase() === theirs.toLowerCase()
      ? h("span", { class: "good" }, "the same")
      : h("span", { class: "bad" }, "differs");
}
