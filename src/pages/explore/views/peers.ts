/** Shows the peers of this node, as a graph around it. */
import type { InfoAnswer, PeerAnswer } from "../answers.js";
import { draw, h } from "../dom.js";
import { code, facts, note, section, table, timeAgo } from "../parts.js";
import type { Looking, View } from "../view.js";
import { counted, short } from "../words.js";

/** Maximum number of drawn peers. More would overlap; the table has all. */
const mostDrawn = 24;

export async function viewPeers({ node, signal }: Looking): Promise<View> {
  const { identity, connectionString, peerlist } = await node.ask<InfoAnswer>("info", signal);
  const rows = peerlist.map((peer, i) => [
    `${i + 1}  ${peer.connection.string}`,
    h("span", { class: classes[stateOf(peer)] }, stateOf(peer)),
    peer.verification.message ?? (peer.verification.status ? "verified" : "not verified"),
    peer.sync.block ?? "unknown",
    peer.status.timestamp === null ? "never" : timeAgo(peer.status.timestamp),
    peer.identity === "" ? "unknown" : h("span", { title: peer.identity }, code(short(peer.identity))),
  ]);
  return {
    title: "Peers",
    contents: [
      facts({ "This node": code(connectionString), Key: code(identity) }),
      section(
        "Graph",
        graph(peerlist),
        note("A solid line: the peer proved its identity. The numbers are those of the table."),
      ),
      section(
        "Peers",
        peerlist.length === 0
          ? note("The node knows no peers.")
          : table("Peers", ["Address", "State", "Identity", "Block", "Seen", "Key"], rows).element,
      ),
    ],
  };
}

type State = "ready" | "online" | "offline";

const classes: Readonly<Record<State, string>> = { ready: "good", online: "warn", offline: "bad" };

function stateOf({ status }: PeerAnswer): State {
  return status.ready ? "ready" : status.online ? "online" : "offline";
}

function graph(peers: readonly PeerAnswer[]): SVGElement {
  const drawn = peers.slice(0, mostDrawn);
  const [width, height] = [340, 260];
  const [x, y] = [width / 2, height / 2];
  const spots = drawn.map((peer, i) => {
    const angle = (2 * Math.PI * i) / drawn.length - Math.PI / 2;
    return { peer, number: i + 1, x: x + 135 * Math.cos(angle), y: y + 100 * Math.sin(angle) };
  });
  const states = (["ready", "online", "offline"] as const)
    .map((state) => [state, peers.filter((peer) => stateOf(peer) === state).length] as const)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`);
  return draw(
    "svg",
    {
      class: "graph",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `This node and ${counted(peers.length, "peer")} around it: ${states.join(", ") || "none"}`,
    },
    ...spots.map(({ peer, x: x2, y: y2 }) =>
      draw("line", {
        class: classes[stateOf(peer)],
        x1: x,
        y1: y,
        x2,
        y2,
        "stroke-dasharray": !peer.verification.status && "4 4",
      }),
    ),
    dot(x, y, "node", "this", 24),
    ...spots.map(({ peer, number, ...at }) => dot(at.x, at.y, classes[stateOf(peer)], String(number), 14)),
  );
}

function dot(x: number, y: number, className: string, text: string, radius: number): SVGElement {
  return draw(
    "g",
    { class: className },
    draw("circle", { cx: x, cy: y, r: radius }),
    draw("text", { x, y: y + 4, "text-anchor": "middle" }, text),
  );
}
