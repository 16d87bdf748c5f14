/** Shows the progress of the snapshot that the node loads. */
import type { SubsystemsResponse } from "../responses.js";
import { h } from "../dom.js";
import { code, facts, note } from "../parts.js";
import type { View, ViewContext } from "../view.js";
import { sizeOf } from "../format.js";

export async function viewSnapshots({ node, signal }: ViewContext): Promise<View> {
  const { subsystems } = await node.fetchJson<SubsystemsResponse>("health/subsystems", signal);
  const loading = subsystems["main_loop"]?.extra?.snapshot;
  return {
    title: "Snapshots",
    contents: [
      h(
        "p",
        {},
        "A snapshot is the complete state after a block. With a snapshot, a new node joins without executing every block.",
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
      note("Nodes offer their snapshots to other nodes only, on the port for peers. This page cannot list them."),
      h("p", {}, "To join this network by a snapshot: ", code("gatehouse join --help")),
    ],
  };
}
