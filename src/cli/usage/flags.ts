/** Flags that several commands share. The code behind them is loaded when a command runs. */
import { type Command, InvalidArgumentError } from "commander";
import { InputError } from "../../base/errors/start-error.js";
import { readInteger } from "../../base/text/integers.js";
import { localUrl } from "../../config/local-url.js";
import { optionsByKey } from "../../config/options.js";
import { readEnvironment } from "../../config/variables.js";

/** Environment variables of commands, in addition to those of the node's options. */
export const variables = {
  node: "GATEHOUSE_NODE",
  key: "GATEHOUSE_KEY",
  passphrase: "GATEHOUSE_KEY_PASSPHRASE",
  control: "GATEHOUSE_CONTROL",
  ca: "GATEHOUSE_CA",
} as const;

/** Names of these variables, which the check for misspelled options must ignore. */
export const commandVariables = Object.values(variables);

/** URL of a node, for messages. */
export const exampleUrl = `http://127.0.0.1:${optionsByKey.rpcPort.fallback}`;

/** Returns the address of a node on this machine that runs with the options in the environment. */
function defaultNode(): string {
  const env = readEnvironment();
  const valueOf = ({ env: name }: { readonly env: string }): string | undefined => env[name];
  const { host, rpcPort, tlsCertFile } = optionsByKey;
  return localUrl({
    host: valueOf(host) ?? host.fallback,
    rpcPort: valueOf(rpcPort) ?? rpcPort.fallback,
    tlsCertFile: valueOf(tlsCertFile),
  });
}

/** Flag of each command that calls a node over TLS. It takes effect before the command runs. */
export interface TrustFlags {
  readonly ca?: string;
}

/** Adds {@link TrustFlags}. */
export function addTrustFlags(command: Command): Command {
  const description = "Certificates (PEM) of nodes or authorities to trust, in addition to public ones.";
  return command.addOption(command.createOption("--ca <FILE>", description).env(variables.ca));
}

export interface NodeFlags extends TrustFlags {
  readonly node: string;
  readonly json?: boolean;
}

export function addNodeFlags(command: Command): Command {
  command.addOption(
    command.createOption("--node <URL>", "URL of the node.").env(variables.node).default(defaultNode()),
  );
  return addTrustFlags(command).option("--json", "Print the node's JSON response.");
}

/** Flags of a command that uses the control service of a node on this machine. */
export interface ControlFlags {
  readonly dataDir: string;
  readonly control?: string;
  readonly json?: boolean;
}

/** Adds the flag of a command that reads or creates the data directory of a node. */
export function addDataDirFlag(command: Command, description: string): Command {
  const { env, fallback } = optionsByKey.dataDir;
  return command.addOption(command.createOption("--data-dir <DIR>", description).env(env).default(fallback));
}

export function addControlFlags(command: Command): Command {
  const control = "Address of the control service: a socket path, or host:port. Default: from --data-dir.";
  return addDataDirFlag(command, "Data directory of the node.").addOption(
    command.createOption("--control <ADDRESS>", control).env(variables.control),
  );
}

export interface NetworkFlags {
  readonly node: string;
  readonly network?: string | undefined;
}

/** Flags of a command that acts as the holder of a key if one is given. */
export interface ReadFlags extends NetworkFlags, NodeFlags {
  readonly key?: string;
}

/** Adds {@link ReadFlags}. */
export function addReadFlags(command: Command, keyDescription = "Key file to read as."): Command {
  const network = "Genesis hash of the network to sign for. Default: the one that the node reports.";
  command.addOption(command.createOption("--key <FILE>", keyDescription).env(variables.key));
  return addNodeFlags(command.option("--network <HASH>", network));
}

export interface PageFlags {
  readonly limit?: number;
  readonly pageToken?: string;
}

export function addPageFlags(command: Command): Command {
  return command
    .option("--limit <NUMBER>", "Maximum number of entries, 1 to 200. Default: 50.", numberBetween(1, 200))
    .option("--page-token <TOKEN>", "Token of the page, which the previous page prints.");
}

export interface ChangeFlags extends ReadFlags {
  readonly wait: boolean;
}

export function addChangeFlags(command: Command): Command {
  return addReadFlags(command.option("--no-wait", "Return without waiting for the block."), "Key file to sign with.");
}

export interface VerifyFlags {
  readonly verify?: string;
  readonly maxAge?: number;
  readonly save?: string;
}

export function addVerifyFlags(command: Command): Command {
  return command
    .option(
      "--genesis-hash, --verify <GENESIS>",
      "Accept only proved responses, on the network with this genesis hash.",
    )
    .option(
      "--max-age <SECONDS>",
      "Reject proofs whose latest authority timestamp is older than this. Default: 120.",
      parseInteger,
    )
    .option("--save <FILE>", "Save the proof to a file, for gatehouse verify.");
}

/** Returns true if the read must be proved. Throws InputError for a flag that requires `--verify`. */
export function isVerifying<F extends VerifyFlags>(flags: F): flags is F & { readonly verify: string } {
  const { verify, save, maxAge } = flags;
  if (verify === undefined && (save !== undefined || maxAge !== undefined)) {
    const name = save === undefined ? "--max-age" : "--save";
    throw new InputError(`${name} requires --verify with the hash of the network's genesis.`);
  }
  return verify !== undefined;
}

export function collectValues(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

/** Returns a parser for whole numbers from `min` to `max`. */
export function numberBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = readInteger(text);
    if (value === undefined || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return Number(value);
  };
}

/** Parses a whole number from 0 to 999,999,999. */
export const parseInteger = numberBetween(0, 999_999_999);

/** Returns the URL of a node unchanged. Throws InputError if it is malformed. */
export function checkUrl(name: string, url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new InputError(`${name} must be a URL such as ${exampleUrl}, not "${url}".`);
  }
  return url;
}
