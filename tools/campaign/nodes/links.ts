/** Links between nodes: a TCP proxy for each pair of caller and target. */
import { startProxies, type ProxyState } from "../../../test/helpers/wire/faulty-wire.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";

/** Link from one node to another. */
export interface Link extends ProxyState {
  readonly from: number;
  readonly to: number;
  /** True if the link rejects connections. */
  isCut: boolean;
}

export type Links = Awaited<ReturnType<typeof createLinks>>;

/** Returns the address from which a node calls others. Only Linux has all of 127.0.0.0/8 as loopback addresses. */
export function addressOf(node: number): string {
  return `127.0.0.${10 + node}`;
}

/** Starts the proxies to these nodes. */
export async function createLinks(t: Teardown, targets: readonly number[]) {
  const count = targets.length;
  const links: Link[] = [];
  for (let from = 0; from < count; from++) {
    for (let to = 0; to < count; to++) {
      if (from !== to) {
        links.push({ from, to, delayMs: 0, isSilent: false, isCut: false });
      }
    }
  }
  const linkOf = (address: string, to: number): Link | undefined =>
    links.find((link) => link.to === to && addressOf(link.from) === address);
  const proxies = await Promise.all(
    targets.map((target, to) =>
      startProxies(
        t,
        () => target,
        (address) => {
          const link = linkOf(address, to) ?? { delayMs: 0, isSilent: false, isCut: false };
          return link.isCut ? undefined : link;
        },
      ),
    ),
  );
  const of = (node: number): Link[] => links.filter(({ from, to }) => from === node || to === node);
  return {
    /** Port of the proxy to each node. */
    ports: proxies.map(({ port }) => port),
    /** Returns the links from and to a node. */
    of: of as (node: number) => readonly Link[],
    /** Returns the links between two nodes, in both directions. */
    between: (a: number, b: number): readonly Link[] => of(a).filter(({ from, to }) => from === b || to === b),
    /** Closes the open connections of these links. */
    closeConnections(closed: readonly Link[]): void {
      for (const { from, to } of closed) {
        for (const socket of proxies[to]!.sockets) {
          if (socket.remoteAddress === addressOf(from)) {
            socket.destroy();
          }
        }
      }
    },
  };
}
