/** Generates the table of docs/options.md. */
import type { Option } from "../../src/config/declare.js";
import { configFile, options } from "../../src/config/options.js";
import { code, plain, table } from "./markdown.js";

/** Returns all flags of `gatehouse start`, in the order of its help. */
export function optionsTable(): string {
  return table(["Flag", "Environment variable", "Default", "Meaning"], [configFile, ...options].map(row));
}

function row({ name, env, type, fallback = "", description }: Option): string[] {
  const flag = type.placeholder === undefined ? `--${name}` : `--${name} ${type.placeholder}`;
  return [code(flag), code(env), fallback === "" ? "" : code(fallback), plain(description)];
}
