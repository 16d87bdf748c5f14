/**
 * Writes dist/assets: copies the assets of the pages, bundles the scripts, and writes the hash of the compiled code,
 * which identifies the build.
 */
import { createHash } from "node:crypto";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildScript } from "./build-script.js";

await cp("src/pages", "dist/assets", {
  recursive: true,
  filter: (path) => !/^src\/pages\/(docs|explore|status)$/.test(path),
});
await writeFile("dist/assets/docs.js", await buildScript("docs/main.js"));
await writeFile("dist/assets/explore.js", await buildScript("explore/main.ts"));
await writeFile("dist/assets/status.js", await buildScript("status/main.js"));
await writeFile("dist/assets/shell.js", await buildScript("explore/shell/shell-page.ts"));
await cp("node_modules/uplot/dist/uPlot.min.css", "dist/assets/uplot.css");
await writeFile("dist/assets/build", await hashOfCode(["dist/gen", "dist/src"]));

async function hashOfCode(folders: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const folder of folders) {
    const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".js"));
    for (const file of files.sort()) {
      hash.update(`${file}\n`).update(await readFile(join(folder, file)));
    }
  }
  return hash.digest("hex").slice(0, 16);
}
