/** `gatehouse attest`: verifies TLSNotary attestations without a node. */
import type { Command } from "commander";
import type { Revealed } from "../attestation/presentation.js";
import { optionsByKey } from "../config/options.js";
import { paint, print, printResult, table } from "./terminal/output.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { readInput } from "./usage/files.js";
import { parseInteger } from "./usage/flags.js";

interface VerifyFlags {
  readonly notaryKeys: readonly string[];
  readonly maxAge: number;
  readonly servers: readonly string[];
  readonly json?: boolean;
}

/** Time limit for the verification: generous, since no other caller waits for it. */
const timeoutMs = 60_000;
/** Limit on the size of a file in bytes, larger than any presentation. Nodes have a lower limit. */
const maxFileBytes = 16 * 1024 * 1024;

export function addAttest(attest: Command): void {
  const verify = attest
    .command("verify <FILE>")
    .description("Verify an attestation offline: base64, hex, the JSON of browser clients, or the bytes themselves.")
    .option("--max-age <SECONDS>", "Maximum age of the attested connection; 0 accepts any.", parseInteger, 0)
    .option("--servers <NAMES>", "Comma-separated servers to accept. Default: any.", parseList, [])
    .option("--json", "Print the outcome as JSON.")
    .addHelpText(
      "after",
      `
For the limits of attestations, see docs/attestation.md.

Example:
  gatehouse attest verify presentation.json --notary-keys 1:02ab…`,
    )
    .action(verifyAttestation);
  verify.addOption(
    verify
      .createOption("--notary-keys <KEYS>", "Comma-separated notaries to trust, such as 1:02ab…")
      .env(optionsByKey.notaryKeys.env)
      .argParser(parseList)
      .default([], "none, so that no attestation verifies"),
  );
}

function parseList(value: string): string[] {
  return value
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

async function verifyAttestation(file: string, flags: VerifyFlags): Promise<void> {
  const [{ checkPolicy, decodePresentation }, { startVerifier }, { RpcError }] = await Promise.all([
    import("../attestation/input.js"),
    import("../attestation/verifier.js"),
    import("../rpc/errors.js"),
  ]);
  const { notaryKeys, maxAge, servers, json } = flags;
  const bytes = await readInput(file, maxFileBytes);
  const ignore = (): void => undefined;
  const verifier = startVerifier({ notaryKeys, onState: ignore, onProblem: ignore, timeoutMs });
  try {
    await verifier.started;
    const presentation = await verifier.verify(decodePresentation(encodedText(bytes)));
    checkPolicy(presentation, { maxAgeS: maxAge, servers }, Date.now());
    const { serverName, connectionTimeS, notaryKey, attestationId, sent, recv, sentLength, recvLength } = presentation;
    printResult(flags, { valid: true, ...presentation, serverName: serverName ?? null }, () => [
      paint("green", "valid"),
      ...table([
        ["SERVER", "TIME", "ATTESTATION"],
        [serverName ?? "not named", new Date(1000 * connectionTimeS).toISOString(), attestationId],
      ]),
      `notary ${notaryKey}`,
      ...describeRanges("sent", sent, sentLength),
      ...describeRanges("received", recv, recvLength),
    ]);
  } catch (error) {
    if (!(error instanceof RpcError)) {
      throw error;
    }
    if (json === true) {
      print(JSON.stringify({ valid: false, error: error.message, errorCode: error.reason }));
    }
    throw new ExitError(json === true ? "" : error.message, exitCodes.failed, error.reason);
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
