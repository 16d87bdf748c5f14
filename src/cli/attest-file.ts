/** Implementation of `gatehouse attest verify`. */
import { decodePresentation } from "../attestation/input.js";
import { checkPolicy } from "../attestation/policy.js";
import type { Revealed } from "../attestation/presentation.js";
import { startVerifier } from "../attestation/verifier.js";
import { RpcError } from "../rpc/errors.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { paint, print, table } from "./terminal/output.js";
import { readInput } from "./usage/read-input.js";

/** Flags of the command: accepted notaries, ages and servers. */
export interface VerifyAttestationFlags {
  readonly notaryKeys: readonly string[];
  readonly maxAge: number;
  readonly servers: readonly string[];
  readonly json?: boolean;
}

const ignore = (): void => undefined;
/** Time limit for the verification: generous, since no other caller waits for it. */
const timeoutMs = 60_000;
/** Limit on the size of a file in bytes, larger than any presentation. Nodes have a lower limit. */
const maxFileBytes = 16 * 1024 * 1024;

/** Verifies the attestation in a file and prints the revealed data. */
export async function verifyAttestation(
  file: string,
  { notaryKeys, maxAge, servers, json }: VerifyAttestationFlags,
): Promise<void> {
  const bytes = await readInput(file, maxFileBytes);
  const verifier = startVerifier({ notaryKeys, onState: ignore, onProblem: ignore, timeoutMs });
  try {
    await verifier.started;
    const presentation = await verifier.verify(decodePresentation(encodedText(bytes)));
    checkPolicy(presentation, { maxAgeS: maxAge, servers }, Date.now());
    if (json === true) {
      print(JSON.stringify({ valid: true, ...presentation, serverName: presentation.serverName ?? null }));
      return;
    }
    const { serverName, connectionTimeS, notaryKey, attestationId, sent, recv } = presentation;
    print(
      paint("green", "valid"),
      ...table([
        ["SERVER", "TIME", "ATTESTATION"],
        [serverName ?? "not named", new Date(1000 * connectionTimeS).toISOString(), attestationId],
      ]),
      `notary ${notaryKey}`,
      ...describeRanges("sent", sent, presentation.sentLength),
      ...describeRanges("received", recv, presentation.recvLength),
    );
  } catch (error) {
    if (error instanceof RpcError && json === true) {
      print(JSON.stringify({ valid: false, error: error.message, errorCode: error.reason }));
      throw new ExitError("", exitCodes.failed);
    }
    throw error instanceof RpcError ? new ExitError(error.message, exitCodes.failed, error.reason) : error;
  } finally {
    await verifier.stop();
  }
}

/** Formats each revealed range separately. Control characters are escaped, since they could control the terminal. */
function describeRanges(direction: string, ranges: readonly Revealed[], length: number): string[] {
  return [
    paint("dim", `${direction}, ${length} bytes in total`),
    ...(ranges.length === 0 ? ["  no bytes revealed"] : []),
    ...ranges.map(({ start, end, text }) => `  ${start}-${end}: ${JSON.stringify(text)}`),
  ];
}

/** Returns the presentation of a file in an encoding for text: a file of printable ASCII as it is, any other as hex. */
function encodedText(bytes: Buffer): string {
  const text = bytes.toString("latin1").trim();
  return /^[\x20-\x7e\s]*$/.test(text) ? text : bytes.toString("hex");
}
