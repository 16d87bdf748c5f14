/** Builds the explorer's script as one file without dependencies. */
import * as esbuild from "esbuild";
import { resolve } from "node:path";
import { messageTables } from "./message-tables.js";

/** Replaces descriptors by tables, and the protobuf library by a small decoder, to keep the script small. */
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
 * Builds the script for browsers since 2023.
 *
 * @param entry source file, below src/pages/explore.
 * @returns the text of the script.
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
