/** Helpers of the tests of deploy/. */
import { existsSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Config, loadConfig } from "../../../src/config/config.js";
import { options } from "../../../src/config/options.js";

/** Loads the configuration from environment variables, all of which must be options. */
export function configOf(env: Readonly<Record<string, string>>): Config {
  const unknown = Object.keys(env).filter((name) => !options.some((option) => option.env === name));
  if (unknown.length > 0) {
    throw new Error(`no options: ${unknown.join(", ")}`);
  }
  return loadConfig({ flags: {}, env, cwd: "/" });
}

/** The default configuration. */
export const defaults = configOf({});

/** Replaces the values in a file of deploy/ that an operator would adapt. */
export function adapt(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((adapted, [from, to]) => {
    if (!adapted.includes(from)) {
      throw new Error(`${from} is not in the configuration`);
    }
    return adapted.replaceAll(from, to);
  }, text);
}

/** Links the packages that remain after `npm prune --omit=dev`. */
export async function linkProductionPackages(to: string): Promise<void> {
  interface Lock {
    packages: Record<string, { dev?: boolean }>;
  }
  const { packages } = JSON.parse(await readFile("package-lock.json", "utf8")) as Lock;
  for (const [path, { dev }] of Object.entries(packages)) {
    if (/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && dev !== true && existsSync(path)) {
      await mkdir(join(to, dirname(path)), { recursive: true });
      await symlink(resolve(path), join(to, path));
    }
  }
}
