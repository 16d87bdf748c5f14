/** Configuration of a node for commands that work on its files. */
import { type Config, loadConfig, pathOfConfigFile, processSources } from "../../config/config.js";
import { commandVariables } from "../usage/flags.js";
import type { NodeFiles } from "../usage/node-flags.js";

/** Returns the configuration that `gatehouse start` would use with these flags. */
export function readNodeConfig({ dataDir, database, config }: NodeFiles): {
  readonly config: Config;
  readonly configFile: string | undefined;
} {
  const given = { "data-dir": dataDir, database, config };
  const flags = Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const sources = processSources({ flags, otherVariables: commandVariables });
  return { config: loadConfig(sources), configFile: pathOfConfigFile(sources) };
}
