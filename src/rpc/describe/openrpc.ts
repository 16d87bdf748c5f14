/** OpenRPC document of the JSON-RPC methods, generated from the same descriptors and rules as the methods. */
import { isRequired } from "../codec/fields.js";
import { commentOf, described, summaryOf } from "./comments.js";
import { createSchemas } from "./json-schema.js";
import { areaOf, type NamedMethod } from "../json-rpc/named-methods.js";
import type { DocumentInfo } from "./openapi.js";
import { fullNameOf } from "../service.js";

export function describeOpenRpc(methods: readonly NamedMethod[], info: DocumentInfo): string {
  const responses = createSchemas("response", "#/components/schemas/");
  const requests = createSchemas("request", "#/components/schemas/");
  const describedMethods = methods.map(({ name, served, responseField }) => {
    const { desc } = served;
    const comment = commentOf(fullNameOf(desc));
    return {
      name,
      tags: [{ name: areaOf(desc.parent) }],
      summary: summaryOf(comment) ?? desc.name,
      ...described(comment),
      paramStructure: "either",
      params: desc.input.fields.map((field) => ({
        name: field.jsonName,
        description: commentOf(fullNameOf(field)),
        required: isRequired(field),
        schema: requests.field(field),
      })),
      result: {
        name: responseField?.jsonName ?? "response",
        schema: responseField === undefined ? responses.message(desc.output) : responses.field(responseField),
      },
    };
  });
  return JSON.stringify({
    openrpc: "1.3.2",
    info: { ...info, license: { name: "Apache-2.0" } },
    methods: describedMethods,
    components: { schemas: { ...responses.definitions(), ...requests.definitions() } },
  });
}
