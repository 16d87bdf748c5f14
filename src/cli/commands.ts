/**
 * Table of the commands. The module of a command is loaded when the command runs or prints its help, so that no command
 * pays for the dependencies of another.
 */
import type { Command } from "commander";

/** Command as listed on the first page of the help. */
export interface CommandEntry {
  readonly name: string;
  readonly description: string;
  /**
   * Kind of a long-running command: `server` runs until it is stopped, `data` processes complete databases or files.
   */
  readonly lasts?: "server" | "data";
  /** Loads the function that adds arguments, flags and the action. `whole` builds the program with all commands. */
  readonly load: () => Promise<(command: Command, whole: () => Promise<Command>) => void>;
}

/** Commands in help order. */
export const commands: readonly CommandEntry[] = [
  {
    name: "init",
    description: "Begin a network: make a key, and a genesis with it as the authority that makes the blocks.",
    load: async () => (await import("./init.js")).addInit,
  },
  {
    name: "join",
    description: "Join a network: take its genesis from one of its nodes, and remember that node as a peer.",
    load: async () => (await import("./join.js")).addJoin,
  },
  {
    name: "start",
    description: "Run a node until Ctrl-C or SIGTERM; SIGHUP makes it read its certificate again.",
    lasts: "server",
    load: async () => (await import("./nodes/start.js")).addStart,
  },
  {
    name: "devnet",
    description: "Run a small network in one process, with sample data, until Ctrl-C.",
    lasts: "server",
    load: async () => (await import("./nodes/devnet.js")).addDevnet,
  },
  {
    name: "light",
    description: "Answer on a local port what nodes of a network prove, and nothing else, until Ctrl-C.",
    lasts: "server",
    load: async () => (await import("./nodes/light.js")).addLight,
  },
  {
    name: "keygen",
    description: "Make an Ed25519 identity key, readable by you only, and print its public key.",
    load: async () => (await import("./keygen.js")).addKeygen,
  },
  {
    name: "health",
    description: "Show how a running node is.",
    load: async () => (await import("./health.js")).addHealth,
  },
  {
    name: "peers",
    description: "Show whom a running node knows, and change it.",
    load: async () => (await import("./peers.js")).addPeers,
  },
  {
    name: "report",
    description: "Tell a node how a subsystem is that another process runs.",
    load: async () => (await import("./report.js")).addReport,
  },
  {
    name: "watch",
    description: "Show what happens on the chain, as it happens.",
    load: async () => (await import("./watch.js")).addWatch,
  },
  {
    name: "search",
    description: "Show what a hash, a key, a number, an address or a name is.",
    load: async () => (await import("./search.js")).addSearch,
  },
  {
    name: "storage",
    description: "Make, change and read storage programs.",
    load: async () => (await import("./transactions/storage.js")).addStorage,
  },
  {
    name: "tx",
    description: "List transactions, and show what became of one.",
    load: async () => (await import("./transactions/tx.js")).addTx,
  },
  {
    name: "zk",
    description: "Add commitments, spend nullifiers, fetch and verify proofs.",
    load: async () => (await import("./transactions/zk.js")).addZk,
  },
  {
    name: "verify",
    description: "Check a saved proof of what is in the state, without any node.",
    load: async () => (await import("./verify.js")).addVerify,
  },
  {
    name: "attest",
    description: "Verify TLSNotary attestations.",
    load: async () => (await import("./attest.js")).addAttest,
  },
  {
    name: "identity",
    description: "Prove who you are.",
    load: async () => (await import("./transactions/identity.js")).addIdentity,
  },
  {
    name: "block",
    description: "List blocks, and move them between nodes as files.",
    load: async () => (await import("./data/block.js")).addBlock,
  },
  {
    name: "verify-data",
    description: "Check that a node's database holds what was signed and stored.",
    lasts: "data",
    load: async () => (await import("./data/verify-data.js")).addVerifyData,
  },
  {
    name: "backup",
    description: "Save a node, which may run, as a new folder: its key, its database and its files.",
    lasts: "data",
    load: async () => (await import("./data/backup.js")).addBackup,
  },
  {
    name: "restore",
    description: "Make a data directory of a backup, once all of it is found to be what was saved.",
    lasts: "data",
    load: async () => (await import("./data/backup.js")).addRestore,
  },
  {
    name: "database",
    description: "Move a node's database.",
    lasts: "data",
    load: async () => (await import("./data/database.js")).addDatabase,
  },
  {
    name: "doctor",
    description: "Look for what is wrong with a node of this machine, and say what to do.",
    load: async () => (await import("./doctor/doctor.js")).addDoctor,
  },
  {
    name: "completion",
    description: "Print a script with which a shell completes commands and flags.",
    load: async () => (await import("./completion.js")).addCompletion,
  },
];
