/** Puts what pages are made of beside the compiled code, and a hash of that code, by which builds are told apart. */
const { createHash } = require("node:crypto");
const { cpSync, readdirSync, readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

cpSync("pages", "dist/assets", { recursive: true });

const hash = createHash("sha256");
for (const folder of ["dist/gen", "dist/src"]) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".js"));
  for (const file of files.sort()) {
    hash.update(`${file}\n`).update(readFileSync(join(folder, file)));
  }
}
writeFileSync("dist/assets/build", hash.digest("hex").slice(0, 16));
