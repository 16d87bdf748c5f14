import { InputError } from "../base/errors/start-error.js";

/** Invalid setting. The message is one sentence with the option, its source and the allowed values. */
export class ConfigError extends InputError {
  override readonly name = "ConfigError";
}
