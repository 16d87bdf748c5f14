/** Checks of a node's database from outside. They read the database without changing it. */
import { messageFor } from "../../base/errors/corruption.js";
import { operatorErrorFor, isDatabaseCorruption, isDatabaseError } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { type Genesis, parseGenesis } from "../../chain/blocks/genesis.js";
import type { Config } from "../../config/config.js";
import { readGenesisFile } from "../../config/genesis-file.js";
import { findFile } from "../../config/data-dir-files.js";
import { followersOf, openPrograms } from "../../node/network/followers.js";
import { type DatabaseReport, hasNoDatabase, inspectDatabase } from "../../node/data/database-report.js";
import { duration } from "../terminal/output.js";
import { type DoctorCheck, fail, ok, skip, warn } from "./check.js";

/** Facts about the genesis of the node's network. */
export interface GenesisFacts {
  readonly hash: string;
  /** True if the node's key is an authority. */
  readonly isAuthority: boolean;
}

/** Checks, and the genesis of the node, if any. */
export interface DatabaseFindings {
  readonly checks: readonly DoctorCheck[];
  readonly genesis: GenesisFacts | undefined;
}

const restore = "Restore a backup, or move the database away and let the node fetch the chain again from its peers.";

/** Checks the database, its owner and its network. */
export async function checkDatabase(config: Config, key: NodeKey | undefined): Promise<DatabaseFindings> {
  const report = await inspectDatabase(config.databaseUrl).catch((problem: unknown) => ({ problem }));
  const configured = await readConfiguredGenesis(config).catch((error: unknown) => error as Error);
  if ("problem" in report) {
    return {
      checks: [
        describeUnusable(report.problem, isNew(config, configured)),
        describeGenesis(undefined, configured, key),
      ],
      genesis: configured instanceof Error ? undefined : factsOf(configured, key),
    };
  }
  const { genesis: stored } = report;
  return {
    checks: [
      describeIntegrity(report),
      describeOwner(report, key),
      describeLease(report),
      describeGenesis(stored, configured, key),
      describeFollowers(config, report),
    ],
    genesis: factsOf(stored, key),
  };
}

/** Returns true if the node has a genesis but no database: it has never started. */
function isNew({ databaseUrl }: Config, genesis: ParsedGenesis | Error): boolean {
  return hasNoDatabase(databaseUrl) && genesis !== undefined && !(genesis instanceof Error);
}

function describeUnusable(error: unknown, isNew: boolean): DoctorCheck {
  if (isNew) {
    return skip("database", "There is none yet: the node creates it at its first start.");
  }
  if (isDatabaseCorruption(error)) {
    return fail("database", messageFor(error, "it cannot be opened"), restore);
  }
  const operatorError = operatorErrorFor(error);
  // The message for an unreachable database already says what to check.
  const remedy = isDatabaseError(operatorError)
    ? "Start it: a starting node waits up to two minutes for its database."
    : "Give the node's --data-dir or --database; a new node creates its database at its first start.";
  return fail("database", errorMessage(operatorError), remedy);
}

function describeIntegrity({ damage, mayBeLost, block }: DatabaseReport): DoctorCheck {
  const [first, ...others] = damage;
  if (first !== undefined) {
    const more = others.length === 0 ? "" : `, and ${others.length} more`;
    return fail(
      "database",
      `The database is corrupt: ${first}${more}.`,
      `${restore} To see what is affected: gatehouse verify-data.`,
    );
  }
  if (mayBeLost.length > 0) {
    return warn("database", mayBeLost.join(" "), "Change it in the server's configuration.");
  }
  return ok("database", `It is readable, up to block ${block ?? "none"}; acknowledged writes are on disk.`);
}

function describeOwner({ lease }: DatabaseReport, key: NodeKey | undefined): DoctorCheck {
  const { identity } = lease;
  if (identity === undefined) {
    return ok("owner", "The database belongs to no key yet: the first node that writes to it becomes its owner.");
  }
  if (key === undefined) {
    return skip("owner", `The database belongs to ${identity}, whose key is not here.`);
  }
  return key.publicKey === identity
    ? ok("owner", "The database belongs to this key.")
    : fail(
        "owner",
        `The database belongs to ${identity}, but this key is ${key.publicKey}: the node will not start.`,
        "Restore the key from the backup, or start once with --recover to take the database over.",
      );
}

function describeLease({ lease: { holder, leftMs } }: DatabaseReport): DoctorCheck {
  if (holder === undefined || leftMs <= 0) {
    return ok("lease", "No node is writing to the database.");
  }
  const { pid, host, sinceMs } = holder;
  const heldS = Math.max(0, Date.now() - sinceMs) / 1000;
  return ok("lease", `The process ${pid} on ${host} has been writing to the database for ${duration(heldS)}.`);
}

/** Genesis from a file or the database; undefined if there is none. */
type ParsedGenesis = Pick<Genesis, "hash" | "authorities" | "followers"> | undefined;

async function readConfiguredGenesis({ dataDir, genesisFile }: Config): Promise<ParsedGenesis> {
  const file = await readGenesisFile(findFile(dataDir, genesisFile, "genesis"));
  return file && parseGenesis(file.path, file.text);
}

function factsOf(genesis: ParsedGenesis, key: NodeKey | undefined): GenesisFacts | undefined {
  return (
    genesis && { hash: genesis.hash, isAuthority: key !== undefined && genesis.authorities.includes(key.publicKey) }
  );
}

function describeGenesis(
  stored: ParsedGenesis,
  configured: ParsedGenesis | Error,
  key: NodeKey | undefined,
): DoctorCheck {
  if (configured instanceof Error) {
    return fail("genesis", configured.message, "Give the network's genesis file with --genesis.");
  }
  const genesis = factsOf(stored ?? configured, key);
  if (genesis === undefined) {
    return fail(
      "genesis",
      "There is no genesis file: the node belongs to no network.",
      "Run: gatehouse init, or gatehouse join URL.",
    );
  }
  if (configured !== undefined && configured.hash !== genesis.hash) {
    return fail(
      "genesis",
      `The genesis file is that of ${configured.hash}, but the database belongs to the network ${genesis.hash}.`,
      "Give the genesis file of that network, or another --data-dir.",
    );
  }
  return ok(
    "genesis",
    `The network is ${genesis.hash}; this node ${genesis.isAuthority ? "makes its blocks" : "follows it"}.`,
  );
}

function describeFollowers(config: Config, { genesis, hasPrivatePrograms }: DatabaseReport): DoctorCheck {
  const name = "followers";
  if (genesis === undefined) {
    return skip(name, "The node belongs to no network.");
  }
  if (followersOf(config, genesis) === "listed") {
    return ok(name, "Only nodes that the genesis or the operator names may follow.");
  }
  return hasPrivatePrograms
    ? warn(name, openPrograms.found, openPrograms.remedy)
    : ok(name, "Every node may follow; all programs are public.");
}
