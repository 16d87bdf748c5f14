import { InputError } from "../base/errors/start-error.js";

/** A wrong setting; the message is one sentence that names the option, its source and what is allowed. */
export class ConfigError extends InputError {
  override readonly name = "ConfigError";
}
