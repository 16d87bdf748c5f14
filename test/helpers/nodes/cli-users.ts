/** A node with one authority, and two users of the command line. */
import { join } from "node:path";
import { testKey, writeKey } from "../chain/keys.js";
import { type CliResult, runCli } from "./run-cli.js";
import { authorityDirectory } from "./start-member.js";
import { startTestNode } from "./start-node.js";
import type { Teardown } from "./teardown.js";

/** Runs a command as one of the users. */
export type CliUser = (...args: readonly string[]) => Promise<CliResult>;

/** Starts the node. Alice has key 2, and Bob key 3. */
export async function startWithUsers(t: Teardown, flags: Readonly<Record<string, string>> = {}) {
  const dir = await authorityDirectory(t, testKey(1));
  await writeKey(join(dir, "alice.key"), testKey(2));
  await writeKey(join(dir, "bob.key"), testKey(3));
  const node = await startTestNode(t, { genesis: "genesis.json", ...flags }, dir);
  const as =
    (key: string | undefined): CliUser =>
    async (...args) =>
      await runCli(args, { env: { GATEHOUSE_NODE: node.rpcUrl, ...(key && { GATEHOUSE_KEY: join(dir, key) }) } });
  return { dir, node, alice: as("alice.key"), bob: as("bob.key"), nobody: as(undefined) };
}
