/** A node with one authority, two users of the command line, and parsers of the tables that commands print. */
import { join } from "node:path";
import { testKey, writeKey } from "../chain/keys.js";
import { cliOutput, type CliResult, runCli } from "./run-cli.js";
import { authorityDirectory, startTestNode } from "./start-node.js";
import type { Teardown } from "./teardown.js";

/** Runs a command as one of the users. */
export interface CliUser {
  (...args: readonly string[]): Promise<CliResult>;
  /** Runs a command that must succeed. Returns its stdout. */
  ok(...args: readonly string[]): Promise<string>;
}

/** Starts the node. Alice has key 2, and Bob key 3. */
export async function startWithUsers(t: Teardown, flags: Readonly<Record<string, string>> = {}) {
  const dir = await authorityDirectory(t, testKey(1));
  await writeKey(join(dir, "alice.key"), testKey(2));
  await writeKey(join(dir, "bob.key"), testKey(3));
  const node = await startTestNode(t, { genesis: "genesis.json", ...flags }, dir);
  const as = (key: string | undefined): CliUser => {
    const surroundings = { env: { GATEHOUSE_NODE: node.rpcUrl, ...(key && { GATEHOUSE_KEY: join(dir, key) }) } };
    return Object.assign((...args: readonly string[]) => runCli(args, surroundings), {
      ok: (...args: readonly string[]) => cliOutput(args, surroundings),
    });
  };
  return { dir, node, alice: as("alice.key"), bob: as("bob.key"), nobody: as(undefined) };
}

/** Returns the rows of a page of a list, as lines. */
export function withoutHeading(stdout: string): string[] {
  return stdout
    .replace(/\n\n[^]*$/, "\n")
    .split("\n")
    .slice(1, -1);
}

/** Returns the token of the next page; undefined on the last page. */
export function pageToken(stdout: string): string | undefined {
  return /\n\nNext page: repeat the command with --page-token (\S+)\n$/.exec(stdout)?.[1];
}
