/** Which build this is. */
import { readFileSync } from "node:fs";
import { version } from "../../base/version.js";

/** The version, and a hash of the compiled code: another one as soon as any of it is. */
export function readBuild(): string {
  return `${version}+${readFileSync(new URL("../../../assets/build", import.meta.url), "utf8")}`;
}
