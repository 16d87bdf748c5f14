/** The packages of tools/packages. Tests that use them are skipped until `npm run tools` has installed them. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { run } from "../chain/programs.js";

const installed = resolve("tools/packages/node_modules");

/** Returns the reason that a package of tools/packages cannot be used; undefined if it is installed. */
export function whyNoTool(name: string): string | undefined {
  return existsSync(`${installed}/${name}`) ? undefined : `${name} is not installed: npm run tools`;
}

/** Returns the path of a program of tools/packages. */
export function toolProgram(name: string): string {
  return `${installed}/.bin/${name}`;
}

/** Loads a package of tools/packages. The caller says which part of it is used. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type says what is loaded
export function loadTool<Library>(name: string): Library {
  return createRequire(`${installed}/`)(name) as Library;
}

/** The reason that {@link bufCurl} is not available; undefined if it is. */
export const whyNoBuf = whyNoTool("@bufbuild/buf");

/** Calls a server with `buf curl`, a client of gRPC, gRPC-Web and Connect, and returns its output. */
export async function bufCurl(...args: readonly string[]): Promise<string> {
  return (await run(toolProgram("buf"), ["curl", ...args])).stdout;
}
