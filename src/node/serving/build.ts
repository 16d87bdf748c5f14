/** Identification of the build. */
import { readFileSync } from "node:fs";
import { version } from "../../base/version.js";

/** Returns the version with a hash of the compiled code, which changes with any change of that code. */
export function readBuild(): string {
  return `${version}+${readFileSync(new URL("../../../assets/build", import.meta.url), "utf8")}`;
}
