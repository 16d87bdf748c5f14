/** Search service. Classifies a query by its form, then searches everything that the form can denote. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type SearchResultSchema,
  SearchResultKind,
  type SearchService,
} from "../../gen/gatehouse/search/v1/search_pb.js";
import { addressForm } from "../base/crypto/signing-payloads.js";
import { toBareHash, toPublicKey } from "../base/crypto/parse-hash.js";
import { latestKeyword } from "../base/latest-block.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation, Literal } from "../rpc/service.js";

type Result = Literal<MessageInitShape<typeof SearchResultSchema>>;
type Found<Kind extends string> = Extract<NonNullable<Result["result"]>, { readonly case: Kind }>["value"] | undefined;
type Programs = readonly NonNullable<Found<"program">>[];

/**
 * Lookups, one for each kind of result. Each returns undefined or an empty list if there is no match or the caller may
 * not read it, instead of an error.
 */
export interface Finders {
  /**
   * Finds a block.
   *
   * @param number Block number; undefined for the latest block.
   */
  block(number: bigint | undefined): Promise<Found<"block">>;
  blockByHash(hash: string): Promise<Found<"block">>;
  transaction(hash: string): Promise<Found<"transaction">>;
  identity(publicKey: string, identity: string | undefined): Promise<Found<"identity">>;
  commitment(commitment: string): Promise<Found<"commitment">>;
  nullifier(hash: string): Promise<Found<"nullifier">>;
  program(address: string, identity: string | undefined): Promise<Found<"program">>;
  /** Finds at most `limit` programs. */
  programsNamed(name: string, exact: boolean, identity: string | undefined, limit: number): Promise<Programs>;
}

/** Limit on programs for each kind of match: exact name, and part of the name. */
const maxPrograms = 10;

const numberForm = /^(0|[1-9][0-9]{0,15})$/;

export function createSearchService(find: Finders): Implementation<typeof SearchService> {
  async function byHash(hash: string, identity: string | undefined): Promise<Result[]> {
    const [block, transaction, owner, commitment, nullifier] = await Promise.all([
      find.blockByHash(hash),
      find.transaction(hash),
      find.identity(hash, identity),
      find.commitment(hash),
      find.nullifier(hash),
    ]);
    return [
      block && { kind: SearchResultKind.BLOCK, result: { case: "block", value: block } as const },
      transaction && {
        kind: SearchResultKind.TRANSACTION,
        result: { case: "transaction", value: transaction } as const,
      },
      owner && { kind: SearchResultKind.IDENTITY, result: { case: "identity", value: owner } as const },
      commitment && { kind: SearchResultKind.COMMITMENT, result: { case: "commitment", value: commitment } as const },
      nullifier && { kind: SearchResultKind.NULLIFIER, result: { case: "nullifier", value: nullifier } as const },
    ].filter((result) => result !== undefined);
  }

  async function byKey(key: string, identity: string | undefined): Promise<Result[]> {
    const value = await find.identity(key, identity);
    return value === undefined
      ? []
      : [{ kind: SearchResultKind.IDENTITY, result: { case: "identity", value } as const }];
  }

  async function byNumber(query: string): Promise<Result[]> {
    const isNumber = numberForm.test(query);
    const block =
      isNumber || query === latestKeyword ? await find.block(isNumber ? BigInt(query) : undefined) : undefined;
    return block === undefined ? [] : [{ kind: SearchResultKind.BLOCK, result: { case: "block", value: block } }];
  }

  /** Finds programs with exactly this name, followed by programs with the text in their name. */
  async function byName(name: string, identity: string | undefined): Promise<Programs> {
    const [named, others] = await Promise.all([
      find.programsNamed(name, true, identity, maxPrograms),
      find.programsNamed(name, false, identity, maxPrograms),
    ]);
    const listed = new Set(named.map(({ storageAddress }) => storageAddress));
    return [...named, ...others.filter(({ storageAddress }) => !listed.has(storageAddress))];
  }

  return {
    async search({ query: text }, { caller: { identity } }) {
      const query = text.trim();
      if (query === "") {
        throw new RpcError("INVALID_REQUEST", "The query must not consist of spaces only.");
      }
      const hash = toBareHash(query);
      const program = addressForm.test(query) ? await find.program(query, identity) : undefined;
      const key = toPublicKey(query);
      const [exact, named] = await Promise.all([
        hash !== undefined ? byHash(hash, identity) : key !== undefined ? byKey(key, identity) : byNumber(query),
        byName(query, identity),
      ]);
      const programs = program === undefined ? named : [program, ...named];
      return {
        query,
        results: [
          ...exact,
          ...programs.map((value) => ({
            kind: SearchResultKind.PROGRAM,
            result: { case: "program", value } as const,
          })),
        ],
      };
    },
  };
}
