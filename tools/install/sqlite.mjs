// Runs at the end of `npm ci`. Fails if SQLite could not be compiled, and names the missing build tools. npm ignores this
// error, since the package is an optional dependency.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";

try {
  createRequire(join(process.cwd(), "package.json"))("sqlite3");
} catch (error) {
  const tools = {
    "Python 3": ["python3", "python"],
    make: ["make", "gmake"],
    "a C++ compiler": ["c++", "g++", "clang++"],
  };
  const isInstalled = (program) => spawnSync(program, ["--version"]).status === 0;
  const missing = Object.keys(tools).filter((name) => !tools[name].some(isInstalled));
  console.error(
    missing.length === 0
      ? `SQLite cannot be loaded (${error.message.split("\n")[0]}); what npm printed above says why it was not compiled.`
      : `SQLite could not be compiled, because ${missing.join(" and ")} ${missing.length > 1 ? "are" : "is"} not ` +
          "installed; install Python 3, make and a C++ compiler (on Debian: apt-get install python3 make g++), " +
          "then run npm ci again.",
  );
  process.exitCode = 1;
}
