/** Examples that exist on the node of the page: its latest block and transaction, a program, a commitment. */
import { sha256Hex } from "../../../client/src/bytes.js";
import { readOperation } from "../../base/describe-operation.js";

/** Number of latest transactions that are searched. */
const searched = 50;
/** Number of programs that are tried until one has an array, and of fields that are checked in each. */
const maxPrograms = 4;
const maxFields = 8;

/** Kinds of examples by the name of a parameter. The kind of `hash` depends on the rpc. */
const kinds = {
  storageAddress: "program",
  addresses: "program",
  field: "field",
  fields: "field",
  index: "index",
  q: "programName",
  owner: "owner",
  owners: "owner",
  sender: "sender",
  senders: "sender",
  address: "sender",
  number: "block",
  blockNumber: "block",
  fromBlock: "block",
  block: "block",
  transactions: "transaction",
  commitment: "commitment",
  nullifierHash: "nullifier",
  nullifiers: "nullifier",
};
const hashKinds = { "chain.getBlockByHash": "blockHash", "chain.getTransaction": "transaction" };

/** Returns the kind of example that a parameter needs; undefined if the node has none. */
export const kindOf = (rpc, parameter) => (parameter === "hash" ? hashKinds[rpc] : kinds[parameter]);

/**
 * Requests examples from the node. Its latest transactions name most of them.
 *
 * @param read returns the JSON response to a path; rejects with NodeError.
 * @returns values by kind. A kind is missing if the node has none.
 * @throws NodeError if the node does not have its latest block and transactions, or does not respond.
 */
export async function findExamples(read) {
  const [head, { transactions }] = await Promise.all([
    read("chain/head"),
    read(`chain/transactions?pageSize=${searched}`),
  ]);
  const found = {};
  // Block 0 is the genesis, which is no block of the list.
  if (head.number > 0) {
    Object.assign(found, { block: head.number, blockHash: head.hash });
  }
  const programs = new Set();
  for (const { hash, body } of transactions) {
    found.transaction ??= hash;
    found.sender ??= body?.sender;
    const target = body && readOperation(body, sha256Hex)?.target;
    if (target?.kind === "program") {
      programs.add(target.name);
    } else if (target !== undefined) {
      found[target.kind] ??= target.name;
    }
  }
  return { ...found, ...(await findProgram(read, [...programs])) };
}

/** Returns the first readable program that has an array, otherwise the first that has a field. */
async function findProgram(read, addresses) {
  let found = {};
  for (const address of addresses.slice(0, maxPrograms)) {
    const program = await describeProgram(read, address).catch((error) => {
      // Deleted, no JSON object, or not readable without an identity: the next may be.
      if (error.reason === "UNREACHABLE") {
        throw error;
      }
    });
    if (program?.index !== undefined) {
      return program;
    }
    found = found.program === undefined ? (program ?? found) : found;
  }
  return found;
}

async function describeProgram(read, address) {
  const path = `storage-program/${address}`;
  const [{ fields }, { results }] = await Promise.all([read(`${path}/fields`), read(`search?q=${address}`)]);
  // Names that a URL changes are read by JSON-RPC only.
  const names = fields.filter((name) => !/^\.{0,2}$/.test(name)).slice(0, maxFields);
  const types = await Promise.all(names.map((name) => read(`${path}/type/${encodeURIComponent(name)}`)));
  const array = names.find((_, i) => types[i].type === "array");
  const { program } = results.find(({ kind }) => kind === "program") ?? {};
  return {
    ...{ program: address, field: array ?? names[0], programName: program?.programName, owner: program?.owner },
    ...(array !== undefined && (await hasItem(read, path, array)) && { index: 0 }),
  };
}

/** Returns true if an array has an item. */
const hasItem = (read, path, field) =>
  read(`${path}/field/${encodeURIComponent(field)}/item/0`).then(
    () => true,
    () => false,
  );
