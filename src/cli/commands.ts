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
   * Kind of a long-running command: `server` runs until it is stopped, `data` processes entire databases or files.
   * Undefined for any other command.
   */
  readonly longRunning?: "server" | "data";
  /**
   * Loads the function that adds arguments, flags and the action. It receives a function that creates the program with
   * all commands.
   */
  readonly load: () => Promise<(command: Command, fullProgram: () => Promise<Command>) => void>;
}

/** Commands in help order. */
export const commands: readonly CommandEntry[] = [
  {
    name: "init",
    description: "Create a network: a key, and a genesis with that key as the authority that produces blocks.",
    load: async () => (await import("./init.js")).addInit,
  },
  {
    name: "join",
    description: "Join a network: fetch its genesis from one of its nodes, and store that node as a peer.",
    load: async () => (await import("./join.js")).addJoin,
  },
  {
    name: "start",
    description: "Run a node until Ctrl-C or SIGTERM; SIGHUP reloads its certificate.",
    longRunning: "server",
    load: async () => (await import("./nodes/start.js")).addStart,
  },
  {
    name: "devnet",
    description: "Run a small network in one process, with sample data, until Ctrl-C.",
    longRunning: "server",
    load: async () => (await import("./nodes/devnet.js")).addDevnet,
  },
  {
    name: "light",
    description: "Serve proved responses of a network's nodes on a local port, until Ctrl-C.",
    longRunning: "server",
    load: async () => (await import("./nodes/light.js")).addLight,
  },
  {
    name: "keygen",
    description: "Create an Ed25519 identity key, readable by you only, and print its public key.",
    load: async () => (await import("./keygen.js")).addKeygen,
  },
  {
    name: "health",
    description: "Show the health of a running node.",
    load: async () => (await import("./health.js")).addHealth,
  },
  {
    name: "peers",
    description: "Show or change the peers of a running node.",
    load: async () => (await import("./peers.js")).addPeers,
  },
  {
    name: "report",
    description: "Report to a node the status of a subsystem that another process runs.",
    load: async () => (await import("./report.js")).addReport,
  },
  {
    name: "watch",
    description: "Show events on the chain as they happen.",
    load: async () => (await import("./watch.js")).addWatch,
  },
  {
    name: "search",
    description: "Find blocks, transactions, programs and senders by hash, key, number, address or name.",
    load: async () => (await import("./search.js")).addSearch,
  },
  {
    name: "storage",
    description: "Create, change and read storage programs.",
    load: async () => (await import("./transactions/storage.js")).addStorage,
  },
  {
    name: "tx",
    description: "List transactions, or show the status of one.",
    load: async () => (await import("./transactions/tx.js")).addTx,
  },
  {
    name: "zk",
    description: "Add commitments, spend nullifiers, fetch and verify proofs.",
    load: async () => (await import("./transactions/zk.js")).addZk,
  },
  {
    name: "verify",
    description: "Verify a saved state proof, without any node.",
    load: async () => (await import("./verify.js")).addVerify,
  },
  {
    name: "attest",
    description: "Verify TLSNotary attestations.",
    load: async () => (await import("./attest.js")).addAttest,
  },
  {
    name: "identity",
    description: "Print headers that prove your identity.",
    load: async () => (await import("./transactions/identity.js")).addIdentity,
  },
  {
    name: "block",
    description: "List blocks, and move them between nodes as files.",
    load: async () => (await import("./data/block.js")).addBlock,
  },
  {
    name: "verify-data",
    description: "Verify the signatures, checksums and state of a node's database.",
    longRunning: "data",
    load: async () => (await import("./data/verify-data.js")).addVerifyData,
  },
  {
    name: "backup",
    description: "Back up a node, running or stopped, to a new folder: its key, database and files.",
    longRunning: "data",
    load: async () => (await import("./data/backup.js")).addBackup,
  },
  {
    name: "restore",
    description: "Verify a backup and restore it to a new data directory.",
    longRunning: "data",
    load: async () => (await import("./data/backup.js")).addRestore,
  },
  {
    name: "database",
    description: "Copy a node's database.",
    longRunning: "data",
    load: async () => (await import("./data/database.js")).addDatabase,
  },
  {
    name: "doctor",
    description: "Check a node on this machine for problems, and say how to fix them.",
    load: async () => (await import("./doctor/doctor.js")).addDoctor,
  },
  {
    name: "completion",
    description: "Print a completion script for a shell.",
    load: async () => (await import("./completion.js")).addCompletion,
  },
];
