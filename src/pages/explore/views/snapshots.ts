/** Shows the snapshot that the node loads, and where snapshots are offered. */
import type { SubsystemsAnswer } from "../answers.js";
import { h } from "../dom.js";
import { code, facts, note } from "../parts.js";
import type { Looking, View } from "../view.js";
import { sizeOf } from "../words.js";

export async function viewSnapshots({ node, signal }: Looking): Promise<View> {
  const { subsystems } = await node.ask<SubsystemsAnswer>("health/subsystems", signal);
  const loading = subsystems["main_loop"]?.extra?.snapshot;
  return {
    title: "Snapshots",
    contents: [
      h(
        "p",
        {},
        "A snapshot is the full state after a block. With one, a new node joins without applying every block.",
      ),
      ...(loading === undefined
        ? [h("p", {}, "This node loads no snapshot now.")]
        : [
            facts({
              "Loads the state after block": loading.block,
              Loaded: `${sizeOf(loading.done_bytes)} of ${sizeOf(loading.total_bytes)}`,
              Speed: `${sizeOf(Math.round(loading.bytes_per_s))} a second`,
              Left: loading.left_s === null ? "unknown" : `${Math.round(loading.left_s)} s`,
            }),
            h("progress", { max: loading.total_bytes, value: loading.done_bytes, "aria-label": "Loaded" }),
          ]),
      note(
        "Nodes offer their snapshots to followers only, on the port for peers, so that this page has no list of them.",
      ),
      h("p", {}, "To join this network by a snapshot: ", code("gatehouse join --help")),
    ],
  };
}
