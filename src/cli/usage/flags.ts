/** Flags that several commands have. What they lead to is loaded when a command runs. */
import { type Command, InvalidArgumentError } from "commander";
import { optionsByKey } from "../../config/options.js";

/** Variables that commands read beside those of the node's options. */
const variables = { node: "GATEHOUSE_NODE", key: "GATEHOUSE_KEY", control: "GATEHOUSE_CONTROL" } as const;

/** The same as a list: none of them is a misspelt option. */
export const commandVariables: readonly string[] = Object.values(variables);

/** Address of a node of this machine, as it is by default. */
export const defaultNode = `http://127.0.0.1:${optionsByKey.rpcPort.fallback}`;

/** Flags of a command that asks a node. */
export interface NodeFlags {
  readonly node: string;
  readonly json?: boolean;
}

/** Adds {@link NodeFlags} to a command. */
export function addNodeFlags(command: Command): Command {
  return command
    .addOption(command.createOption("--node <URL>", "The node to ask.").env(variables.node).default(defaultNode))
    .option("--json", "Print the node's own JSON.");
}

/** Flags of a command that asks a node of this machine as its operator. */
export interface ControlFlags {
  readonly dataDir: string;
  readonly control?: string;
  readonly json?: boolean;
}

/** Adds {@link ControlFlags} to a command. */
export function addControlFlags(command: Command): Command {
  const { env, fallback } = optionsByKey.dataDir;
  const control = "Its control service: a socket's path, or host:port; made from --data-dir.";
  return command
    .addOption(command.createOption("--data-dir <DIR>", "Data directory of the node.").env(env).default(fallback))
    .addOption(command.createOption("--control <ADDRESS>", control).env(variables.control));
}

/** Adds `--key` to a command. */
export function addKeyFlag(command: Command, description: string): Command {
  return command.addOption(command.createOption("--key <FILE>", description).env(variables.key));
}

/** For which network is signed, as a command is told. */
export interface NetworkFlags {
  readonly node: string;
  readonly network?: string | undefined;
}

/** Adds `--network` to a command that signs. */
export function addNetworkFlag(command: Command): Command {
  return command.option(
    "--network <HASH>",
    "The genesis hash of the network to sign for; the one that the node names when left out.",
  );
}

/** Flags of a command that reads, as the holder of a key where one is given. */
export interface ReadFlags extends NetworkFlags, NodeFlags {
  readonly key?: string;
}

/** Adds {@link ReadFlags} to a command. */
export function addReadFlags(command: Command): Command {
  return addNodeFlags(addNetworkFlag(addKeyFlag(command, "Read as the holder of this key.")));
}

/** Which page of a list. */
export interface PageFlags {
  readonly limit?: number;
  readonly pageToken?: string;
}

/** Adds {@link PageFlags} to a command. */
export function addPageFlags(command: Command): Command {
  return command
    .option("--limit <NUMBER>", "How many, 1 to 200; 50 when left out.", numberBetween(1, 200))
    .option("--page-token <TOKEN>", "Go on with this page: the page before says its token.");
}

/** Flags of the commands that change something. */
export interface ChangeFlags extends NetworkFlags, NodeFlags {
  readonly key?: string;
  readonly wait: boolean;
}

/** Adds {@link ChangeFlags} to a command. */
export function addChangeFlags(command: Command): Command {
  command.option("--no-wait", "Do not wait for the block.");
  return addNodeFlags(addNetworkFlag(addKeyFlag(command, "The key that signs.")));
}

/** Flags of a command that reads what a node can prove. */
export interface VerifyFlags {
  readonly verify?: string;
  readonly maxAge?: number;
  readonly save?: string;
}

/** Adds {@link VerifyFlags} to a command. */
export function addVerifyFlags(command: Command): Command {
  return command
    .option("--verify <GENESIS>", "Believe what is proved alone, on the network with this genesis hash.")
    .option(
      "--max-age <SECONDS>",
      "How long ago an authority must have said at least that the proved block is the newest; 120 when left out.",
      wholeNumber,
    )
    .option("--save <FILE>", "Save the proof, for gatehouse verify.");
}

/** Reads a whole number from 0. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new InvalidArgumentError("It must be a whole number from 0.");
  }
  return Number(text);
}

/** What reads a whole number of a range. */
export function numberBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) {
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    }
    return value;
  };
}
