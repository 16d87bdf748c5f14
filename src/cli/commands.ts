/**
 * Table of the commands. The module of a command is loaded when the command runs or prints its help, so that no command
 * pays for the dependencies of another.
 */
import type { Command } from "commander";

/** Descriptions of the commands on the first page of the help, in its order. */
export const descriptions = {
  init: "Create a network: a key, and a genesis with that key as the authority that produces blocks.",
  join: "Join a network: fetch its genesis from one of its nodes, and store that node as a peer.",
  start: "Run a node until Ctrl-C or SIGTERM; SIGHUP reloads its certificate.",
  devnet: "Run a small network in one process, with sample data, until Ctrl-C.",
  light: "Serve proved responses of a network's nodes on a local port, until Ctrl-C.",
  keygen: "Create an Ed25519 identity key, readable by you only, and print its public key.",
  health: "Show the health of a running node.",
  peers: "Show or change the peers of a running node.",
  report: "Report to a node the status of a subsystem that another process runs.",
  watch: "Show events on the chain as they happen.",
  search: "Find blocks, transactions, programs and senders by hash, key, number, address or name.",
  storage: "Create, change and read storage programs.",
  tx: "List transactions, or show the status of one.",
  zk: "Add commitments, spend nullifiers, fetch and verify proofs.",
  verify: "Verify a saved state proof, without any node.",
  attest: "Verify TLSNotary attestations.",
  identity: "Print headers that prove your identity.",
  block: "List blocks, and move them between nodes as files.",
  "verify-data": "Verify the signatures, checksums and state of a node's database.",
  backup: "Back up a node, running or stopped, to a new folder: its key, database and files.",
  restore: "Verify a backup and restore it to a new data directory.",
  database: "Copy a node's database.",
  doctor: "Check a node on this machine for problems, and say how to fix them.",
  completion: "Print a completion script for a shell.",
} as const;

export type CommandName = keyof typeof descriptions;

/**
 * Adds arguments, flags and the action to a command. Receives a function that creates the program with all commands as
 * well.
 */
export type AddCommand = (command: Command, fullProgram: () => Promise<Command>) => void;

/** Functions that load the commands. */
export const commands: Readonly<Record<CommandName, () => Promise<AddCommand>>> = {
  init: async () => (await import("./init.js")).addInit,
  join: async () => (await import("./join.js")).addJoin,
  start: async () => (await import("./nodes/start.js")).addStart,
  devnet: async () => (await import("./nodes/devnet.js")).addDevnet,
  light: async () => (await import("./nodes/light.js")).addLight,
  keygen: async () => (await import("./keygen.js")).addKeygen,
  health: async () => (await import("./health.js")).addHealth,
  peers: async () => (await import("./peers.js")).addPeers,
  report: async () => (await import("./report.js")).addReport,
  watch: async () => (await import("./watch.js")).addWatch,
  search: async () => (await import("./search.js")).addSearch,
  storage: async () => (await import("./transactions/storage.js")).addStorage,
  tx: async () => (await import("./transactions/tx.js")).addTx,
  zk: async () => (await import("./transactions/zk.js")).addZk,
  verify: async () => (await import("./verify.js")).addVerify,
  attest: async () => (await import("./attest.js")).addAttest,
  identity: async () => (await import("./transactions/identity.js")).addIdentity,
  block: async () => (await import("./data/block.js")).addBlock,
  "verify-data": async () => (await import("./data/verify-data.js")).addVerifyData,
  backup: async () => (await import("./data/backup.js")).addBackup,
  restore: async () => (await import("./data/restore.js")).addRestore,
  database: async () => (await import("./data/database.js")).addDatabase,
  doctor: async () => (await import("./doctor/doctor.js")).addDoctor,
  completion: async () => (await import("./completion.js")).addCompletion,
};

/** Long-running commands. A server runs until it is stopped; others process entire databases or files. */
export const longRunning: Readonly<Partial<Record<string, "server" | "data">>> = {
  ...{ start: "server", devnet: "server", light: "server" },
  ...{ "verify-data": "data", backup: "data", restore: "data", database: "data" },
};
