/** The version that a release changes, where a test looks for it. */
import { version } from "../../../src/base/version.js";

export { version };

/** The same in a pattern. */
export const versionPattern = version.replaceAll(".", "\\.");
