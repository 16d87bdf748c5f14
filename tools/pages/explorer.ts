/** Builds the explorer's script, one file without anything beside it. */
import * as esbuild from "esbuild";
import { resolve } from "node:path";
import { messageTables } from "./message-tables.js";

/** Proofs are read by tables in place of descriptors, and by a reader of these tables in place of the library. */
export const messageTablesPlugin: esbuild.Plugin = {
  name: "message-tables",
  setup(build) {
    build.onResolve({ filter: /^@bufbuild\/protobuf$/ }, () => ({ path: resolve("src/pages/explore/protobuf.ts") }));
    build.onLoad({ filter: /\/gen\/gatehouse\/.*_pb\.[jt]s$/ }, async ({ path }) => ({
      contents: await messageTables(path.replace(/\.[jt]s$/, "")),
      loader: "js",
      resolveDir: resolve("."),
    }));
  },
};

/**
 * Builds it, for browsers of 2023 and newer.
 *
 * @param entry its source, below src/pages/explore.
 * @returns its text.
 */
export async function buildExplorer(entry = "main.ts"): Promise<string> {
  const { outputFiles } = await esbuild.build({
    entryPoints: [resolve("src/pages/explore", entry)],
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome111", "firefox113", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
    write: false,
    logLevel: "error",
    plugins: [messageTablesPlugin],
  });
  return outputFiles[0]!.text;
}
