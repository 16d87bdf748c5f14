/** Checks of a node's database from outside. They read the database without changing it. */
import { messageFor } from "../../base/errors/corruption.js";
import { operatorErrorFor, isDatabaseCorruption, isDatabaseError } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { type Genesis, parseGenesis } from "../../chain/blocks/genesis.js";
import type { Config } from "../../config/config.js";
import { readGenesisFile } from "../../config/input-files.js";
import { findFile } from "../../config/data-dir-files.js";
import { followersOf, openPrograms } from "../../node/network/followers.js";
import { type DatabaseReport, inspectDatabase, isMissing } from "../../node/data/database-report.js";
import { duration } from "../terminal/output.js";
import { type DoctorCheck, resultsOf } from "./check.js";

export interface GenesisFacts {
  readonly hash: string;
  readonly isAuthority: boolean;
  /** Number of authorities. A node produces blocks by itself only if it is the only one. */
  readonly authorityCount: number;
}

const restore = "Restore a backup, or move the database away and let the node fetch the chain again from its peers.";

/** Checks the database, its owner and its network. Returns the genesis as well, if any. */
export async function checkDatabase(
  config: Config,
  key: NodeKey | undefined,
): Promise<{ checks: DoctorCheck[]; genesis: GenesisFacts | undefined }> {
  const report = await inspectDatabase(config.databaseUrl).catch((problem: unknown) => ({ problem }));
  const configured = await readConfiguredGenesis(config).catch((error: unknown) => error as Error);
  if ("problem" in report) {
    const known = configured instanceof Error ? undefined : factsOf(configured, key);
    // A node with a genesis but no database has never started.
    const isNew = isMissing(config.databaseUrl) && known !== undefined;
    const checks = [describeUnusable(report.problem, isNew), describeGenesis(config, undefined, configured, key)];
    return { checks, genesis: known };
  }
  const { genesis: stored } = report;
  const checks = [
    describeIntegrity(report),
    describeOwner(report, key),
    describeLease(report),
    describeGenesis(config, stored, configured, key),
    describeFollowers(config, report),
  ];
  return { checks, genesis: factsOf(stored, key) };
}

function describeUnusable(error: unknown, isNew: boolean): DoctorCheck {
  const { skip, fail } = resultsOf("database");
  if (isNew) {
    return skip("There is none yet: the node creates it at its first start.");
  }
  if (isDatabaseCorruption(error)) {
    return fail(messageFor(error, "it cannot be opened"), restore);
  }
  const operatorError = operatorErrorFor(error);
  // The message for an unreachable database already says what to check.
  const remedy = isDatabaseError(operatorError)
    ? "Start it: a starting node waits up to two minutes for its database."
    : "Give the node's --data-dir or --database; a new node creates its database at its first start.";
  return fail(errorMessage(operatorError), remedy);
}

function describeIntegrity({ damage, mayBeLost, block }: DatabaseReport): DoctorCheck {
  const { ok, warn, fail } = resultsOf("database");
  const [first, ...others] = damage;
  if (first !== undefined) {
    const more = others.length === 0 ? "" : `, and ${others.length} more`;
    const remedy = `${restore} To see what is affected: gatehouse verify-data, with the node's --data-dir or --database.`;
    return fail(`The database is corrupt: ${first}${more}.`, remedy);
  }
  return mayBeLost.length > 0
    ? warn(mayBeLost.join(" "), "Change it in the server's configuration.")
    : ok(`It is readable, up to block ${block ?? "none"}; acknowledged writes are on disk.`);
}

function describeOwner({ lease: { identity } }: DatabaseReport, key: NodeKey | undefined): DoctorCheck {
  const { ok, skip, fail } = resultsOf("owner");
  if (identity === undefined) {
    return ok("The database belongs to no key yet: the first node that writes to it becomes its owner.");
  }
  if (key === undefined) {
    return skip(`The database belongs to ${identity}, whose key is not here.`);
  }
  return key.publicKey === identity
    ? ok("The database belongs to this key.")
    : fail(
        `The database belongs to ${identity}, but this key is ${key.publicKey}: the node will not start.`,
        "Restore the key from the backup, or start once with --recover to take the database over.",
      );
}

function describeLease({ lease: { holder, leftMs } }: DatabaseReport): DoctorCheck {
  const { ok } = resultsOf("lease");
  if (holder === undefined || leftMs <= 0) {
    return ok("No node is writing to the database.");
  }
  const { pid, host, sinceMs } = holder;
  const heldS = Math.max(0, Date.now() - sinceMs) / 1000;
  return ok(`The process ${pid} on ${host} has been writing to the database for ${duration(heldS)}.`);
}

/** Genesis from a file or the database; undefined if there is none. */
type ParsedGenesis = Pick<Genesis, "hash" | "authorities" | "followers"> | undefined;

async function readConfiguredGenesis({ dataDir, genesisFile }: Config): Promise<ParsedGenesis> {
  const file = await readGenesisFile(findFile(dataDir, genesisFile, "genesis"));
  return file && parseGenesis(file.path, file.text);
}

function factsOf(genesis: ParsedGenesis, key: NodeKey | undefined): GenesisFacts | undefined {
  return (
    genesis && {
      hash: genesis.hash,
      isAuthority: key !== undefined && genesis.authorities.includes(key.publicKey),
      authorityCount: genesis.authorities.length,
    }
  );
}

function describeGenesis(
  { dataDir }: Config,
  stored: ParsedGenesis,
  configured: ParsedGenesis | Error,
  key: NodeKey | undefined,
): DoctorCheck {
  const { ok, fail } = resultsOf("genesis");
  if (configured instanceof Error) {
    return fail(configured.message, "Give the network's genesis file with --genesis.");
  }
  const genesis = factsOf(stored ?? configured, key);
  if (genesis === undefined) {
    return fail(
      "There is no genesis file: the node belongs to no network.",
      `Run gatehouse init or gatehouse join URL, with --data-dir ${dataDir}`,
    );
  }
  if (configured !== undefined && configured.hash !== genesis.hash) {
    return fail(
      `The genesis file is that of ${configured.hash}, but the database belongs to the network ${genesis.hash}.`,
      "Give the genesis file of that network, or another --data-dir.",
    );
  }
  return ok(`The network is ${genesis.hash}; this node ${describeRole(genesis)}.`);
}

function describeRole({ isAuthority, authorityCount }: GenesisFacts): string {
  if (!isAuthority) {
    return "follows it";
  }
  return authorityCount === 1
    ? "produces its blocks"
    : `is one of its ${authorityCount} authorities, for which an external consensus process must produce the blocks`;
}

function describeFollowers(config: Config, { genesis, hasPrivatePrograms }: DatabaseReport): DoctorCheck {
  const { ok, skip, warn } = resultsOf("followers");
  if (genesis === undefined) {
    return skip("The node belongs to no network.");
  }
  if (followersOf(config, genesis) === "listed") {
    return ok("Only nodes that the genesis or the operator names may follow.");
  }
  if (hasPrivatePrograms) {
    return warn(openPrograms.found, openPrograms.remedy);
  }
  return config.followers === undefined
    ? warn(
        "The genesis lists no followers, so every node that reaches the internal port may follow, and read private programs.",
        "Start all nodes of the network with --followers listed, or with --followers open if this is meant.",
      )
    : ok("Every node may follow, as --followers open says; all programs are public.");
}
