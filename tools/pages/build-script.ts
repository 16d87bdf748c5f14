/** Bundles a script of a page with its dependencies into one file. */
import * as esbuild from "esbuild";
import { resolve } from "node:path";

/**
 * Bundles a script for browsers from 2023 and later.
 *
 * @param entry source file in src/pages.
 * @returns the text of the script.
 */
export async function buildScript(entry: string): Promise<string> {
  const { outputFiles } = await esbuild.build({
    entryPoints: [resolve("src/pages", entry)],
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
