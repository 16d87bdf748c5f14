/** Keys on the command line: to sign transactions, and to say who reads. */
import type { Command } from "commander";
import { resolve } from "node:path";
import { identityMessage } from "../base/identity-message.js";
import { loadNodeKey, type NodeKey } from "../base/node-key.js";
import { ExitError } from "./output.js";

/** Adds `--key` to a command. */
export function addKeyFlag(command: Command, description: string): Command {
  return command.addOption(command.createOption("--key <FILE>", description).env("GATEHOUSE_KEY"));
}

/**
 * The key of a file.
 *
 * @throws ExitError with code 2 when there is none.
 */
export async function loadKey(path: string | undefined): Promise<NodeKey> {
  if (path === undefined) {
    throw new ExitError("--key FILE is needed to sign; make one with: gatehouse keygen --out FILE", 2);
  }
  return await loadNodeKey(resolve(path)).catch((error: unknown) => {
    throw new ExitError(error instanceof Error ? error.message : String(error), 2);
  });
}

/** The three headers that prove an identity for the next five minutes. */
export function identityHeaders(key: NodeKey): Record<"identity" | "timestamp" | "signature", string> {
  const identity = `ed25519:${key.publicKey}`;
  const timestamp = String(Date.now());
  return { identity, timestamp, signature: `0x${key.sign(identityMessage(identity, timestamp)).toString("hex")}` };
}
