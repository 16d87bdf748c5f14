/** The wires between nodes: one for each that calls and each that is called. */
import { layWires, type WireState } from "../../../test/helpers/wire/faulty-wire.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";

/** A wire from one node to another. */
export interface Link extends WireState {
  readonly from: number;
  readonly to: number;
  /** It refuses connections. */
  isCut: boolean;
}

/** All of them. */
export interface Links {
  /** Where the wires to a node begin. */
  readonly ports: readonly number[];
  /** Those between these nodes, in both directions. */
  between(one: number, other: number): readonly Link[];
  /** Those from and to a node. */
  of(node: number): readonly Link[];
  /** Ends the connections on these. */
  hangUp(links: readonly Link[]): void;
}

/** The address from which a node calls the others. Linux has all of 127.0.0.0/8; elsewhere all call from 127.0.0.1. */
export function addressOf(node: number): string {
  return `127.0.0.${10 + node}`;
}

/** Lays wires to these nodes. */
export async function layLinks(t: Teardown, targets: readonly (() => number)[]): Promise<Links> {
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
  const ends = await Promise.all(
    targets.map((target, to) =>
      layWires(t, target, (address) => {
        const link = linkOf(address, to) ?? { delayMs: 0, isSilent: false, isCut: false };
        return link.isCut ? undefined : link;
      }),
    ),
  );
  const of = (node: number): Link[] => links.filter(({ from, to }) => from === node || to === node);
  return {
    ports: ends.map(({ port }) => port),
    of,
    between: (one, other) => of(one).filter(({ from, to }) => from === other || to === other),
    hangUp(which) {
      for (const { from, to } of which) {
        for (const socket of ends[to]!.sockets) {
          if (socket.remoteAddress === addressOf(from)) {
            socket.destroy();
          }
        }
      }
    },
  };
}
