/** Shows the peers of this node, as a map and as a table. */
import type { HeadResponse, InfoResponse, PeerResponse } from "../responses.js";
import { containing, dataTable, fromList, oneOf } from "../table/data-table.js";
import { draw, h } from "../dom.js";
import { withQuery } from "../node.js";
import { code, facts, hash, note, ownerLink, section, timeAgo, untrusted } from "../parts.js";
import type { View, ViewContext } from "../view.js";
import { counted } from "../format.js";

/** Maximum number of peers on the map, where more would overlap. The table has all peers. */
const maxDrawn = 24;
/** Maximum number of requests for peers after the first page. */
const maxRequests = 20;

/** Peer with its number on the map and in the table, from 1. */
interface NumberedPeer {
  readonly number: number;
  readonly peer: PeerResponse;
}

export async function viewPeers({ node, signal }: ViewContext): Promise<View> {
  const [{ identity, connectionString, peerlist, nextPeerOffset }, head] = await Promise.all([
    node.fetchJson<InfoResponse & { readonly nextPeerOffset?: number }>("info", signal),
    node.fetchJson<HeadResponse>("chain/head", signal),
  ]);
  const peers = [...peerlist];
  for (let offset = nextPeerOffset, i = 0; offset !== undefined && i < maxRequests; i++) {
    const page = await node.fetchJson<readonly PeerResponse[]>(
      withQuery("peerlist", { offset: String(offset) }),
      signal,
    );
    peers.push(...page);
    offset = page.length === 0 ? undefined : offset + page.length;
  }
  const rows = peers.map((peer, i): NumberedPeer => ({ number: i + 1, peer }));
  return {
    title: "Peers",
    contents: [
      facts({
        "This node": code(connectionString),
        Key: hash(identity),
        "Its latest block": head.number,
        Peers: peers.length,
      }),
      section(
        "Map",
        map(peers, head.number),
        note(
          "The connections of this node; a node does not know those between its peers. A solid line: the peer proved its identity. Inside: the number in the table. Below: how many blocks the peer is behind (−) or ahead (+).",
        ),
      ),
      section(
        "Peers",
        await dataTable<NumberedPeer>({
          id: "peers",
          label: "Peers",
          columns: [
            { name: "Number", cell: ({ number }) => number, csv: ({ number }) => number },
            {
              name: "Address",
              cell: ({ peer }) => untrusted(peer.connection.string, 300),
              csv: ({ peer }) => peer.connection.string,
            },
            {
              name: "State",
              cell: ({ peer }) => h("span", { class: classes[stateOf(peer)] }, stateOf(peer)),
              csv: ({ peer }) => stateOf(peer),
            },
            {
              name: "Identity",
              cell: ({ peer }) => untrusted(identityStateOf(peer), 300),
              csv: ({ peer }) => identityStateOf(peer),
            },
            { name: "Block", cell: ({ peer }) => peer.sync.block ?? "unknown", csv: ({ peer }) => peer.sync.block },
            {
              name: "Lag",
              cell: ({ peer }) => describeLag(lagOf(peer, head.number)),
              csv: ({ peer }) => lagOf(peer, head.number),
            },
            {
              name: "Last seen",
              cell: ({ peer }) => (peer.status.timestamp === null ? "never" : timeAgo(peer.status.timestamp)),
              csv: ({ peer }) => (peer.status.timestamp === null ? "" : new Date(peer.status.timestamp).toISOString()),
            },
            {
              name: "Key",
              cell: ({ peer }) => (peer.identity === "" ? "unknown" : ownerLink(peer.identity)),
              csv: ({ peer }) => peer.identity,
            },
          ],
          filters: [
            oneOf("state", "State", ["ready", "online", "offline"], ({ peer }) => stateOf(peer)),
            containing("address", "Address contains", ({ peer }) => peer.connection.string),
          ],
          empty: "The node knows no peers.",
          load: fromList(rows),
        }),
      ),
    ],
  };
}

type State = "ready" | "online" | "offline";

const classes: Readonly<Record<State, string>> = { ready: "good", online: "warn", offline: "bad" };

function stateOf({ status }: PeerResponse): State {
  return status.ready ? "ready" : status.online ? "online" : "offline";
}

function identityStateOf({ verification }: PeerResponse): string {
  return verification.message ?? (verification.status ? "verified" : "not verified");
}

/** Returns the number of blocks that a peer is behind; negative if it is ahead, undefined while unknown. */
function lagOf({ sync }: PeerResponse, latest: number): number | undefined {
  return sync.block === null ? undefined : latest - sync.block;
}

function describeLag(lag: number | undefined): string {
  return lag === undefined
    ? "unknown"
    : lag === 0
      ? "none"
      : lag > 0
        ? `${counted(lag, "block")} behind`
        : `${counted(-lag, "block")} ahead`;
}

/** Draws this node in the center and its peers around it. */
function map(peers: readonly PeerResponse[], latest: number): SVGElement {
  const drawn = peers.slice(0, maxDrawn);
  const [width, height] = [340, 280];
  const [x, y] = [width / 2, height / 2];
  const positions = drawn.map((peer, i) => {
    const angle = (2 * Math.PI * i) / drawn.length - Math.PI / 2;
    return { peer, number: i + 1, x: x + 135 * Math.cos(angle), y: y - 6 + 105 * Math.sin(angle) };
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
    ...positions.map(({ peer, x: x2, y: y2 }) =>
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
    ...positions.map(({ peer, number, x, y }) =>
      dot(x, y, classes[stateOf(peer)], String(number), 14, lagMark(lagOf(peer, latest))),
    ),
  );
}

/** Returns the lag as a signed number of blocks, relative to this node. */
function lagMark(lag: number | undefined): string {
  return lag === undefined ? "" : lag === 0 ? "±0" : lag > 0 ? `−${lag}` : `+${-lag}`;
}

/** Draws a labeled circle with an optional text below it. */
function dot(x: number, y: number, className: string, text: string, radius: number, below = ""): SVGElement {
  return draw(
    "g",
    { class: className },
    draw("circle", { cx: x, cy: y, r: radius }),
    draw("text", { x, y: y + 4, "text-anchor": "middle" }, text),
    draw("text", { class: "lag", x, y: y + radius + 12, "text-anchor": "middle" }, below),
  );
}
