/** Generates the tables of the documents from the code, and the JSON Schema of the configuration file. */
import { z } from "zod";
import { ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { Code } from "../../gen/google/rpc/code_pb.js";
import { describeOption, type Option } from "../../src/config/declare.js";
import { configFile, options } from "../../src/config/options.js";
import { nodeMetrics } from "../../src/metrics/table.js";
import { bootSteps } from "../../src/node/lifecycle/boot-steps.js";
import { commentOf } from "../../src/rpc/describe/comments.js";
import { errorCatalog, type Reason } from "../../src/rpc/errors.js";
import { serverError } from "../../src/rpc/json-rpc/request.js";

/** Returns the boot steps in order, for docs/internals/architecture.md. */
export function bootTable(): string {
  const rows = Object.entries(bootSteps).map(([name, rules]) => [
    code(name),
    "isElsewhere" in rules ? "another process" : "the node",
    "waits" in rules ? "waits" : "runs",
    "isElsewhere" in rules || "mayFail" in rules ? "goes on" : "ends",
  ]);
  return table(["Step", "Run by", "In a dormant node", "After an error, the boot"], rows);
}

/** Returns, for docs/metrics.md, every metric of the node, in the order of its page. */
export function metricsTable(): string {
  return table(
    ["Metric", "Type", "Labels", "Value"],
    nodeMetrics.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(", "), plain(help)]),
  );
}

/** Returns, for docs/options.md, all flags of `gatehouse start`, in the order of its help. */
export function optionsTable(): string {
  return table(["Flag", "Environment variable", "Default", "Meaning"], [configFile, ...options].map(optionRow));
}

function optionRow({ name, env, type, fallback = "", description }: Option): string[] {
  const flag = type.placeholder === undefined ? `--${name}` : `--${name} ${type.placeholder}`;
  return [code(flag), code(env), fallback === "" ? "" : code(fallback), plain(description)];
}

/** Returns, for docs/errors.md, every error reason of the API in order, with its comment in the proto file. */
export function reasonsTable(): string {
  const reasons = ReasonSchema.values.filter(({ localName }) => localName in errorCatalog);
  return table(
    ["Reason", "HTTP", "gRPC", "JSON-RPC", "Transient", "When, and what to do"],
    reasons.map(({ localName, name }) => {
      const { httpStatus, grpcCode, jsonRpcCode = serverError, transient } = errorCatalog[localName as Reason];
      return [
        code(localName),
        String(httpStatus),
        `${grpcCode} ${code(Code[grpcCode])}`,
        String(jsonRpcCode),
        transient ? "yes" : "",
        plain(commentOf(`${ReasonSchema.typeName}.${name}`)),
      ];
    }),
  );
}

/**
 * Returns the schema of the configuration file as JSON, in draft 7, which editors support best. It checks keys and types;
 * the node checks the rest.
 */
export function configSchema(): string {
  const keys = options.map((option) => [
    option.name,
    option.type.schema(z).optional().describe(describeOption(option)),
  ]);
  const file = z.strictObject(Object.fromEntries(keys) as Record<string, z.ZodType>);
  return JSON.stringify({
    title: "The configuration file of gatehouse start",
    ...z.toJSONSchema(file, { io: "input", target: "draft-7" }),
  });
}

/** Formats a table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Formats text as code. */
export function code(word: string | number): string {
  return `\`${word}\``;
}

/** Escapes text for a table cell. */
export function plain(text: string): string {
  return text.replaceAll(/[|<_*`]/g, "\\$&");
}
