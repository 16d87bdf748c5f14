/** `gatehouse keygen`: creates the identity key of a node before its first start. */
import type { Command } from "commander";
import { resolve } from "node:path";
import { createNodeKey, nodeKeyPath } from "../base/crypto/node-key.js";
import { ExitError } from "./usage/errors.js";
import { addDataDirFlag } from "./usage/flags.js";
import { printResult } from "./terminal/output.js";

export function addKeygen(command: Command): void {
  addDataDirFlag(command, "Data directory of the node that will use the key.")
    .option("--out <FILE>", "Write the key to this file instead.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
A node creates its key at its first start. Use keygen if others must know the public key before that.
An existing key is never overwritten.

Examples:
  gatehouse keygen --data-dir /var/lib/gatehouse
  gatehouse keygen --out alice.key --json`,
    )
    .action(async (flags: { dataDir: string; out?: string; json?: boolean }) => {
      const path = resolve(flags.out ?? nodeKeyPath(flags.dataDir));
      const { publicKey } = await createNodeKey(path).catch((error: unknown) => {
        const { code, message } = error as NodeJS.ErrnoException;
        throw new ExitError(
          code === "EEXIST"
            ? `${path} already has a key; choose another path, or remove the key if it is not needed.`
            : `The key cannot be written to ${path}: ${message}.`,
        );
      });
      printResult(flags, { publicKey, path }, () => [publicKey, `written to ${path}`]);
    });
}
