/**
 * Tags of what answers are made of: the build of this node, the network, its newest block, and what authorities say of
 * that. A number alone would not do: after a restore there may be another block with it.
 */
import { createHash } from "node:crypto";
import { Caching } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { readBuild } from "./build.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import type { StateTags } from "../../rpc/gate.js";

export interface StateTagsDeps {
  readonly chain: Pick<Chain, "head">;
  readonly heads: Pick<HeadStatements, "newestStatement">;
  /** Undefined while there is no block 0. */
  readonly genesis: () => Pick<Genesis, "hash"> | undefined;
}

/** Makes a tag when what it names is another thing than before. */
export function createStateTags({ chain, heads, genesis }: StateTagsDeps): StateTags {
  const build = readBuild();
  let ofNetwork: string | undefined;
  const ofState = onceForEach((head) => tagOf(build, String(head.number), ...partsOf(head)));
  const ofHead = onceForEach((head, statement) =>
    tagOf(
      ...[build, String(head.number), ...partsOf(head)],
      ...(statement === undefined ? ["nothing said"] : [statement.statement, statement.signature]),
    ),
  );
  return {
    tagOf(madeOf) {
      if (madeOf === Caching.NETWORK) {
        const network = genesis();
        return (ofNetwork ??= network && tagOf(build, "network", network.hash));
      }
      const head = chain.head();
      if (head === undefined) {
        return undefined;
      }
      return madeOf === Caching.HEAD ? ofHead(head, heads.newestStatement(head.hash)) : ofState(head, undefined);
    },
  };
}

type Head = NonNullable<ReturnType<Chain["head"]>>;
type Statement = ReturnType<HeadStatements["newestStatement"]>;

/** What of the newest block answers are made of. */
function partsOf({ genesisHash, hash, lowestBlock }: Head): string[] {
  return [genesisHash, hash, String(lowestBlock)];
}

/** A weak tag: its name, for people, and a hash of the build and of what it is the tag of. */
function tagOf(build: string, name: string, ...of: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256").update(build);
  for (const part of of) {
    hash.update("\n").update(part);
  }
  return `W/"${name}.${hash.digest("base64url").slice(0, 22)}"`;
}

/** Heads and statements are other objects when they are others. */
function onceForEach(make: (head: Head, statement: Statement) => string): (head: Head, statement: Statement) => string {
  let last: { readonly head: Head; readonly statement: Statement; readonly tag: string } | undefined;
  return (head, statement) => {
    if (last?.head !== head || last.statement !== statement) {
      last = { head, statement, tag: make(head, statement) };
    }
    return last.tag;
  };
}
