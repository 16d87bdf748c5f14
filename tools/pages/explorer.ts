/** Builds the explorer's script as one file without dependencies. */
import * as esbuild from "esbuild";
import { resolve } from "node:path";

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
  });
  return outputFiles[0]!.text;
}
