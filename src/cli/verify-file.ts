/** Implementation of `gatehouse verify`: checks a proof in a file, and prints the proved facts. */
import { fromBinary } from "@bufbuild/protobuf";
import { BlockHeaderSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { checkProof, type ProvedState } from "../../client/src/proof/check.js";
import { type ProofNetwork, readProofNetwork } from "../../client/src/proof/network.js";
import type { ProvedProgram } from "../../client/src/proof/program.js";
import { ProofError } from "../../client/src/proof/proof-error.js";
import { InputError } from "../base/errors/start-error.js";
import { readSavedProof } from "../light/saved-proof.js";
import { paint, printResult } from "./terminal/output.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { readTextInput } from "./usage/files.js";

/** Limit on the size of a file in bytes, larger than a response with the largest document. */
const maxFileBytes = 64 * 1024 * 1024;

/**
 * Prints the facts that the proof in a file proves. Throws ExitError with code 1 if the proof does not hold, and
 * InputError if a file cannot be read.
 *
 * @param flags `genesis` is the hash of the trusted genesis, or the path of its file.
 */
export async function verifyFile(
  file: string,
  flags: { readonly genesis: string; readonly json?: boolean },
): Promise<void> {
  const text = await readTextInput(file, maxFileBytes);
  const pinned = /^0x[0-9a-f]{64}$/i.test(flags.genesis) ? flags.genesis.toLowerCase() : undefined;
  const trusted = pinned === undefined ? await readTextInput(flags.genesis, maxFileBytes) : undefined;
  try {
    const { genesis, asked, answer } = readSavedProof(text);
    const genesisText = trusted ?? genesis;
    if (genesisText === undefined) {
      throw new InputError("The file has only the node's response; give the genesis file: --genesis genesis.json");
    }
    const network = readProofNetwork(genesisText, pinned);
    // A proof stays valid for its block, so its age is not checked.
    const state = checkProof(asked, answer, { network, nowMs: Date.now(), maxAgeS: Infinity });
    const address = asked.storageAddress ?? "";
    printResult(flags, toBody(state, address, network), () => describe(state, address));
  } catch (error) {
    if (error instanceof ProofError) {
      throw new ExitError(`The proof is invalid: ${error.message}`, exitCodes.failed, error.reason);
    }
    throw error;
  }
}

function describe(state: ProvedState, address: string): string[] {
  const { number, timestampMs, saidMs } = state.block;
  const latestAt = saidMs > timestampMs ? `, still the latest at ${toIso(saidMs)}` : "";
  return [
    `${paint("green", "valid")}: as of block ${number} of ${toIso(timestampMs)}${latestAt},`,
    `signed by ${proposerOf(state) ?? "no authority, as it is the genesis"}`,
    ...(state.program === undefined ? [] : describeProgram(state.program, address)),
    ...state.nullifiers.map(({ nullifierHash, use }) =>
      use === undefined
        ? `The nullifier ${nullifierHash} is not spent.`
        : `The nullifier ${nullifierHash} was spent in block ${use.blockNumber} by ${use.transactionHash}.`,
    ),
    ...state.senders.map(({ address: sender, nonce }) =>
      nonce === undefined
        ? `The sender ${sender} had sent a transaction.`
        : nonce === 0n
          ? `The sender ${sender} has sent no transactions.`
          : `The last nonce of ${sender} is ${nonce}.`,
    ),
    ...describeCommitments(state),
  ];
}

function describeProgram(program: ProvedProgram, address: string): string[] {
  if (program.kind !== "present") {
    const finding =
      program.kind === "absent" ? "There has never been a program" : "There was a program, which has since changed,";
    return [`${finding} at ${address}.`];
  }
  const { record, data, document, metadata, fields } = program;
  if (record.deleted) {
    return [`The program ${address} was deleted.`];
  }
  return [
    `The program ${address} is ${JSON.stringify(record.programName)} of ${record.owner}.`,
    ...[...fields].map(([name, value]) =>
      value === undefined
        ? `It has no field ${JSON.stringify(name)}.`
        : `Its field ${JSON.stringify(name)} is: ${value}`,
    ),
    ...(data !== undefined ? [`It holds: ${data}`] : document === "none" ? ["It is empty."] : []),
    ...(metadata === undefined ? [] : [`Its metadata: ${metadata}`]),
  ];
}

function describeCommitments({ commitments }: ProvedState): string[] {
  switch (commitments?.kind) {
    case "tree":
      return [`The root of the commitment tree is ${commitments.root}, of ${commitments.leafCount} leaves.`];
    case "empty":
      return ["The commitment tree has no leaves."];
    case "changed":
      return ["The commitment tree has changed since."];
    default:
      return [];
  }
}

function toBody(state: ProvedState, storageAddress: string, { genesisHash }: ProofNetwork): object {
  const { block, program, nullifiers, senders, commitments } = state;
  return {
    valid: true,
    genesisHash,
    block: {
      number: Number(block.number),
      hash: block.hash,
      timestamp: Number(block.timestampMs),
      newestAt: Number(block.saidMs),
      proposer: proposerOf(state) ?? null,
    },
    ...(program !== undefined && { program: { storageAddress, ...toProgramBody(program) } }),
    nullifiers: nullifiers.map(({ nullifierHash, use }) => ({
      nullifierHash,
      used: use !== undefined,
      blockNumber: use === undefined ? null : Number(use.blockNumber),
      transactionHash: use?.transactionHash ?? null,
    })),
    senders: senders.map(({ address, nonce }) => ({ address, nonce: nonce === undefined ? null : Number(nonce) })),
    ...(commitments !== undefined && {
      commitments:
        commitments.kind === "tree"
          ? { rootHash: commitments.root, leafCount: commitments.leafCount }
          : { kind: commitments.kind },
    }),
  };
}

/** Returns the JSON of a program. JSON documents remain strings, so that their numbers retain all digits. */
function toProgramBody(program: ProvedProgram): object {
  if (program.kind !== "present") {
    return { kind: program.kind };
  }
  const { record, fields, data = null, metadata = null } = program;
  return {
    kind: record.deleted ? "deleted" : "present",
    programName: record.programName,
    owner: record.owner,
    fields: [...fields].map(([name, value]) => ({ name, value: value ?? null })),
    data,
    metadata,
  };
}

function proposerOf({ block: { signed } }: ProvedState): string | undefined {
  return signed && fromBinary(BlockHeaderSchema, signed.header).proposer;
}

function toIso(timeMs: bigint): string {
  return new Date(Number(timeMs)).toISOString();
}
