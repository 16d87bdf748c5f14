/** The current version, for tests. */
import { version } from "../../../src/base/version.js";

export { version };

/** The version, escaped for a regular expression. */
export const versionPattern = version.replaceAll(".", "\\.");
