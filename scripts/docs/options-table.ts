/** The table of docs/options.md. */
import type { Option } from "../../src/config/declare.js";
import { configFile, options } from "../../src/config/options.js";

/** All flags of `gatehouse start`, in the order of its help. */
export function optionsTable(): string {
  const head = ["Flag", "Environment variable", "Default", "Meaning"];
  return [head, head.map(() => "---"), ...[configFile, ...options].map(row)]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

function row({ name, env, type, fallback = "", description }: Option): string[] {
  const flag = type.placeholder === undefined ? `--${name}` : `--${name} ${type.placeholder}`;
  return [code(flag), code(env), fallback === "" ? "" : code(fallback), description.replaceAll(/[|<]/g, "\\$&")];
}

function code(text: string): string {
  return `\`${text}\``;
}
