// Compiles what has changed and runs one file of tests: npm run test:one test/base/bus.test.ts [-- --match 'title*'].
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const [source, ...options] = process.argv.slice(2);
if (source === undefined || !/\.(test|slow)\.ts$/.test(source) || !existsSync(source)) {
  console.error(`Name a file of tests, such as test/base/bus.test.ts; ${source ?? "no name"} is none.`);
  process.exit(2);
}
const config = source.endsWith(".slow.ts") ? ["--config", "slow.config.js"] : [];
for (const [program, ...args] of [
  ["tsc"],
  ["ava", ...config, `dist/${source.replace(/^\.\//, "").replace(/ts$/, "js")}`, ...options],
]) {
  // npm puts the programs of the packages on the path.
  const { status } = spawnSync(program, args, { stdio: "inherit" });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}
