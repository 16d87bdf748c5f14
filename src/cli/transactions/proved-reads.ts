/** Reads that accept only proved responses of a node. */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { GatehouseError } from "../../../client/src/gatehouse-error.js";
import { ProofError, type ProofFlaw } from "../../../client/src/proof/proof-error.js";
import type { HashPair } from "../../../client/src/proof/source.js";
import { createProvedReader, type ProvedReader } from "../../light/proved-reader.js";
import { createStartRead } from "../../light/upstream.js";
import { InputError } from "../../base/errors/start-error.js";
import { tlsTrust } from "../calls/authorities.js";
import { connectionFailure } from "../calls/request-node.js";
import { ago, paint } from "../terminal/output.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import { writeOutput } from "../usage/files.js";
import { checkUrl, type NetworkFlags, type NodeFlags, type VerifyFlags } from "../usage/flags.js";
import { identityOf, parseGenesisHash } from "./caller.js";

/**
 * Returns JSON as the node would send it, built from proved data. Reports the proving block on stderr unless `--json`
 * is set. Throws ExitError with code 1 for a missing proof, and for a proved absence; code 3 if the node is
 * unreachable.
 */
export async function readProved<I extends DescMessage, O extends DescMessage>(
  flags: NetworkFlags & NodeFlags & VerifyFlags & { readonly key?: string; readonly verify: string },
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  hashPair?: HashPair,
): Promise<string> {
  const { node, verify, network, maxAge: maxAgeS } = flags;
  const genesisHash = parseGenesisHash("--verify", verify);
  if (network !== undefined && network.toLowerCase() !== genesisHash) {
    throw new InputError("--network and --verify name different networks; leave --network out.");
  }
  const headers = await identityOf({ ...flags, network: genesisHash });
  const startRead = createStartRead(checkUrl("--node", node), { headers, tls: await tlsTrust() });
  const reader = createProvedReader(startRead(), { genesisHash, maxAgeS, hashPair });
  try {
    const text = await reader.read(method, request);
    await save(reader, flags.save);
    if (flags.json !== true && reader.block !== undefined) {
      const { number, saidMs } = reader.block;
      const proved = `proved by block ${number}, the latest as of ${ago(Number(saidMs))}`;
      process.stderr.write(`${paint("dim", proved)}\n`);
    }
    return text;
  } catch (error) {
    // An absence is proved as well, so save its proof.
    if (error instanceof GatehouseError && !(error instanceof ProofError)) {
      await save(reader, flags.save);
    }
    throw toExitError(error, node);
  }
}

async function save(reader: ProvedReader, path: string | undefined): Promise<void> {
  const text = path === undefined ? undefined : await reader.proofFile();
  if (path !== undefined && text !== undefined) {
    await writeOutput(path, text);
  }
}

const advice: Readonly<Partial<Record<ProofFlaw, string>>> = {
  network: "Compare the hash after --verify with one that you trust, or use a node of that network with --node.",
  age: "If this machine's clock is right, use another node with --node, or increase --max-age.",
  fork: "An authority signed both: report it to the network's operator.",
  unprovable: "To trust the node's response, leave --verify out.",
};
const useOtherNode = "Do not trust this node; use another one with --node.";

function toExitError(error: unknown, node: string): unknown {
  if (error instanceof ProofError) {
    const { message, flaw, reason } = error;
    return new ExitError(`Not proved: ${message} ${advice[flaw] ?? useOtherNode}`, exitCodes.failed, reason);
  }
  if (!(error instanceof GatehouseError)) {
    return error;
  }
  const { message, reason } = error;
  if (reason === "UNREACHABLE") {
    return connectionFailure(node, error);
  }
  const prefix = error.fromNode ? "The node rejected the request" : "Proved";
  return new ExitError(`${prefix}: ${message} (${reason})`, exitCodes.failed, reason);
}
