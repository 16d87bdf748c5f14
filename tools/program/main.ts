/**
 * Bundles the program and its dependencies into dist/program, which starts in less time than a thousand separate files.
 * Code of processes and threads has the same paths there as in dist/src.
 */
import * as esbuild from "esbuild";
import { readdir, readFile, rm } from "node:fs/promises";
import { relative, resolve } from "node:path";

/** Packages that find files by their path, and drivers of knex that are not installed. */
const external = [
  ...["pino", "sqlite3", "tlsn-wasm"],
  ...["better-sqlite3", "mariadb", "mysql", "mysql2", "oracledb", "pg-native", "pg-query-stream", "tedious"],
];

/** Keeps the URLs of files that are next to a source file, such as assets and the code of threads. */
const urls: esbuild.Plugin = {
  name: "urls",
  setup(build) {
    build.onLoad({ filter: /\/dist\/src\/.*\.js$/ }, async ({ path }) => {
      const url = `import.meta.url.replace(/(.*\\/program\\/).*/, "$1${relative(resolve("dist/src"), path)}")`;
      return { contents: (await readFile(path, "utf8")).replaceAll("import.meta.url", url) };
    });
    // Half of zod are translations of its messages.
    build.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "" }));
  },
};

const files = await readdir("dist/src", { recursive: true });
await rm("dist/program", { recursive: true, force: true });
await esbuild.build({
  entryPoints: files.filter((file) => /(^main|\bworker)\.js$/.test(file)).map((file) => `dist/src/${file}`),
  outdir: "dist/program",
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  sourcemap: true,
  sourcesContent: false,
  // CommonJS packages load modules of Node.js by `require`.
  banner: {
    js: 'import { createRequire as requireAt } from "node:module"; const require = requireAt(import.meta.url);',
  },
  external,
  plugins: [urls],
  logLevel: "error",
});
