/** `gatehouse attest`: verifies TLSNotary attestations without any node. */
import { type Command, InvalidArgumentError } from "commander";
import { readFile } from "node:fs/promises";
import { readPresentation } from "../attestation/input.js";
import { checkPolicy } from "../attestation/policy.js";
import type { Revealed } from "../attestation/presentation.js";
import { startVerifier } from "../attestation/verifier.js";
import { optionsByKey } from "../config/options.js";
import { Failure } from "../rpc/errors.js";
import { ExitError, paint, print, table } from "./output.js";

interface VerifyFlags {
  readonly notaryKeys: readonly string[];
  readonly maxAge: number;
  readonly servers: readonly string[];
  readonly json?: boolean;
}

const ignore = (): void => undefined;
/** Verification has time here: nobody else waits for it. */
const timeoutMs = 60_000;

/** Adds the commands. */
export function addAttest(program: Command): void {
  const attest = program.command("attest").description("Verify TLSNotary attestations.");
  const verify = attest
    .command("verify <FILE>")
    .description("Verify an attestation offline: base64, hex, the JSON of browser clients, or the bytes themselves.")
    .option("--max-age <SECONDS>", "Oldest connection that is accepted; 0 for any.", wholeNumber, 0)
    .option("--servers <NAMES>", "Servers that are accepted, separated by commas; any without.", list, [])
    .option("--json", "Print the outcome as JSON.")
    .addHelpText(
      "after",
      `
What a verified attestation proves, and what it does not: docs/attestation.md.

Example:
  gatehouse attest verify presentation.json --notary-keys 1:02ab…`,
    );
  verify
    .addOption(
      verify
        .createOption("--notary-keys <KEYS>", "Notaries that are trusted, such as 1:02ab…, separated by commas.")
        .env(optionsByKey.notaryKeys.env)
        .argParser(list)
        .default([], "none: nothing verifies"),
    )
    .action(async (file: string, flags: VerifyFlags) => {
      await verifyFile(file, flags);
    });
}

async function verifyFile(file: string, { notaryKeys, maxAge, servers, json }: VerifyFlags): Promise<void> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new ExitError(`${file} cannot be read: ${(error as Error).message}`, 2);
  });
  const verifier = startVerifier({ notaryKeys, onState: ignore, onProblem: ignore, timeoutMs });
  try {
    await verifier.started;
    const presentation = await verifier.verify(readPresentation(textOf(bytes)));
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
      ...describe("sent", sent, presentation.sentLength),
      ...describe("received", recv, presentation.recvLength),
    );
  } catch (error) {
    if (error instanceof Failure && json === true) {
      print(JSON.stringify({ valid: false, error: error.message, errorCode: error.reason }));
      throw new ExitError("", 1);
    }
    throw error instanceof Failure ? new ExitError(error.message, 1) : error;
  } finally {
    await verifier.stop();
  }
}

/** Revealed ranges, each by itself; control characters are shown, not sent to the terminal. */
function describe(what: string, ranges: readonly Revealed[], length: number): string[] {
  return [
    paint("dim", `${what}, ${length} bytes in all`),
    ...(ranges.length === 0 ? ["  nothing is revealed"] : []),
    ...ranges.map(({ start, end, text }) => `  ${start}-${end}: ${JSON.stringify(text)}`),
  ];
}

/** A file may hold the bytes themselves: those are no text in one of the known forms. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString("latin1").trim();
  return /^[\x20-\x7e\s]*$/.test(text) ? text : bytes.toString("hex");
}

function list(value: string): string[] {
  return value
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function wholeNumber(value: string): number {
  if (!/^\d{1,10}$/.test(value)) {
    throw new InvalidArgumentError("It must be a whole number of seconds.");
  }
  return Number(value);
}
