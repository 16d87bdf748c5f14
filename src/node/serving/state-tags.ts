/**
 * Entity tags of responses. A tag covers the data that a response depends on: the build, the network, the latest block
 * and its signed head. A block number alone is not enough, because a restored node may have another block with the same
 * number.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Caching } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { version } from "../../base/version.js";
import type { Chain } from "../../chain/chain.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import type { StateTags } from "../../rpc/gate.js";
import type { PublicFacts } from "./public-facts.js";

/** Creates the tags. A tag is computed again only when its data changes. */
export function createStateTags({
  chain,
  heads,
  genesis,
}: Pick<PublicFacts, "chain" | "heads" | "genesis">): StateTags {
  const build = readBuild();
  let networkTag: string | undefined;
  const stateTag = cacheLast((head) => tagOf(build, String(head.number), ...blockPartsOf(head)));
  const headTag = cacheLast((head, statement) =>
    tagOf(
      ...[build, String(head.number), ...blockPartsOf(head)],
      ...(statement === undefined ? ["no signed head"] : [statement.statement, statement.signature]),
    ),
  );
  return {
    tagOf(cachingRule) {
      if (cachingRule === Caching.NETWORK) {
        const network = genesis();
        return (networkTag ??= network && tagOf(build, "network", network.hash));
      }
      const head = chain.head();
      if (head === undefined) {
        return undefined;
      }
      return cachingRule === Caching.HEAD
        ? headTag(head, heads.latestSignedHead(head.hash))
        : stateTag(head, undefined);
    },
  };
}

/** Returns the version with a hash of the compiled code, which changes with any change of that code. */
function readBuild(): string {
  return `${version}+${readFileSync(new URL("../../../assets/build", import.meta.url), "utf8")}`;
}

type Head = NonNullable<ReturnType<Chain["head"]>>;
type Statement = ReturnType<HeadStatements["latestSignedHead"]>;

/** Returns the parts of the latest block that responses depend on. */
function blockPartsOf({ genesisHash, hash, lowestBlock }: Head): string[] {
  return [genesisHash, hash, String(lowestBlock)];
}

/** Returns a weak tag: a readable name, and a hash of the build and of the data. */
function tagOf(build: string, name: string, ...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256").update(build);
  for (const part of parts) {
    hash.update("\n").update(part);
  }
  return `W/"${name}.${hash.digest("base64url").slice(0, 22)}"`;
}

/** Wraps a function so that it caches its last tag. Compares arguments by identity: a change creates a new object. */
function cacheLast(create: (head: Head, statement: Statement) => string): typeof create {
  let last: { readonly head: Head; readonly statement: Statement; readonly tag: string } | undefined;
  return (head, statement) => {
    if (last?.head !== head || last.statement !== statement) {
      last = { head, statement, tag: create(head, statement) };
    }
    return last.tag;
  };
}
