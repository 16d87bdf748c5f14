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

/** Matches a block number, also as pages show it, with commas between thousands. */
const numberForm = /^(0|[1-9][0-9]{0,15}|[1-9][0-9]{0,2}(,[0-9]{3}){1,4})$/;

/** Kind of each result in the API. */
const kinds = {
  block: SearchResultKind.BLOCK,
  transaction: SearchResultKind.TRANSACTION,
  identity: SearchResultKind.IDENTITY,
  commitment: SearchResultKind.COMMITMENT,
  nullifier: SearchResultKind.NULLIFIER,
  program: SearchResultKind.PROGRAM,
};

/** Returns the result of a lookup as a list, which is empty if there is none. */
function resultsOf<Kind extends keyof typeof kinds>(kind: Kind, value: Found<Kind>): Result[] {
  return value === undefined ? [] : [{ kind: kinds[kind], result: { case: kind, value } as Result["result"] }];
}

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
      ...resultsOf("block", block),
      ...resultsOf("transaction", transaction),
      ...resultsOf("identity", owner),
      ...resultsOf("commitment", commitment),
      ...resultsOf("nullifier", nullifier),
    ];
  }

  async function byNumber(query: string): Promise<Result[]> {
    if (query === latestKeyword) {
      return resultsOf("block", await find.block(undefined));
    }
    return numberForm.test(query) ? resultsOf("block", await find.block(BigInt(query.replaceAll(",", "")))) : [];
  }

  async function byForm(query: string, identity: string | undefined): Promise<Result[]> {
    const hash = toBareHash(query.replace(/^0X/, "0x"));
    if (hash !== undefined) {
      return await byHash(hash, identity);
    }
    const key = toPublicKey(query);
    return key === undefined ? await byNumber(query) : resultsOf("identity", await find.identity(key, identity));
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
      const program = addressForm.test(query) ? await find.program(query, identity) : undefined;
      const [exact, named] = await Promise.all([byForm(query, identity), byName(query, identity)]);
      const programs = program === undefined ? named : [program, ...named];
      return {
        query,
        results: [...exact, ...programs.flatMap((value) => resultsOf("program", value))],
      };
    },
  };
}
