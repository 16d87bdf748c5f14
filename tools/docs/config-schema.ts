/**
 * Generates the JSON Schema of the configuration file, for editors. It checks keys and types; the node checks the rest.
 */
import { z } from "zod";
import { describeOption } from "../../src/config/declare.js";
import { options } from "../../src/config/options.js";

/** Returns the schema as JSON, in draft 7, which editors support best. */
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
