/** Configuration of a node for commands that work on its files. */
import { type Config, loadConfig, pathOfConfigFile, processSources } from "../../config/config.js";
import { commandVariables } from "../usage/flags.js";
import type { NodeFiles } from "../usage/node-flags.js";

/** Returns the configuration that `gatehouse start` would use with these flags. */
export function readNodeConfig({ dataDir, database, config }: NodeFiles): {
  readonly config: Config;
  readonly configFile: string | undefined;
} {
  const flags = { "data-dir": dataDir, database, config };
  const sources = processSources({ flags, otherVariables: commandVariables });
  return { config: loadConfig(sources), configFile: pathOfConfigFile(sources) };
}
