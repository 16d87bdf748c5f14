/**
 * Describes the plain HTTP routes as an OpenAPI 3.1 document, made of the same descriptors and rules as the routes
 * themselves. Nothing is described by hand.
 */
import type { DescField } from "@bufbuild/protobuf";
import { catalogue } from "../errors.js";
import type { CommentOf } from "./comments.js";
import { type HttpRoute, readHttpRule } from "../http/http-rule.js";
import { createSchemas, fullNameOf, type JsonSchema, parameterSchema, type Schemas } from "./json-schema.js";
import { areaOf } from "../json-rpc/named-methods.js";
import { pathFieldsOf } from "../http/path-template.js";
import type { ServedMethod, ServedService } from "../service.js";

/** What the document is about. */
export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
}

/** What operations are described with. */
interface Vocabulary {
  readonly responses: Schemas;
  readonly requests: Schemas;
  readonly commentOf: CommentOf;
}

/** Builds the document, as JSON text. */
export function describeOpenApi(services: readonly ServedService[], info: DocumentInfo, commentOf: CommentOf): string {
  const responses = createSchemas("response", "#/components/schemas/", commentOf);
  const requests = createSchemas("request", "#/components/schemas/", commentOf);
  const paths: Record<string, Record<string, unknown>> = {};
  const tags: Record<string, unknown>[] = [];

  for (const { desc, methods } of services) {
    const routed = methods.flatMap((served) => {
      const route = readHttpRule(served.desc);
      return route === undefined ? [] : [{ served, route }];
    });
    if (routed.length > 0) {
      tags.push({ name: areaOf(desc), description: commentOf(desc.typeName) });
    }
    for (const { served, route } of routed) {
      const path = templateOf(served, route);
      const operation = describeOperation(served, route, { responses, requests, commentOf });
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation };
    }
  }

  return JSON.stringify({
    openapi: "3.1.0",
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    info: { ...info, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: "/" }],
    security: [{}, { identity: [], timestamp: [], signature: [] }],
    tags,
    paths,
    components: {
      schemas: { ...responses.definitions(), ...requests.definitions(), Failure: failureSchema },
      responses: {
        Failure: { description: "Refused or failed.", content: json({ $ref: "#/components/schemas/Failure" }) },
      },
      securitySchemes: Object.fromEntries(
        Object.entries(identityHeaders).map(([name, description]) => [
          name,
          { type: "apiKey", in: "header", name, description },
        ]),
      ),
    },
  });
}

function describeOperation(served: ServedMethod, route: HttpRoute, vocabulary: Vocabulary): object {
  const { desc } = served;
  const { responses, requests, commentOf } = vocabulary;
  const [summary = "", ...rest] = commentOf(`${desc.parent.typeName}.${desc.name}`).split("\n\n");
  const schema =
    route.responseField === undefined ? responses.message(desc.output) : responses.field(route.responseField);
  return {
    operationId: `${areaOf(desc.parent)}.${desc.localName}`,
    tags: [areaOf(desc.parent)],
    summary,
    ...(rest.length > 0 && { description: rest.join("\n\n") }),
    parameters: describeParameters(served, route, commentOf),
    ...(route.hasBody && {
      requestBody: { required: true, content: { "application/json": { schema: requests.message(desc.input) } } },
    }),
    responses: {
      200: { description: "Done.", content: json(schema) },
      // The status of these says something of the body, which is whole all the same.
      ...(served.plainReply !== undefined && {
        503: { description: "Done; the answer is no.", content: json(schema) },
      }),
      default: { $ref: "#/components/responses/Failure" },
    },
  };
}

function describeParameters({ desc }: ServedMethod, route: HttpRoute, commentOf: CommentOf): object[] {
  const inPath = pathFieldsOf(route.template);
  const describe = (field: DescField, where: "path" | "query"): object => ({
    name: field.jsonName,
    in: where,
    ...(where === "path" && { required: true }),
    description: commentOf(fullNameOf(field)),
    schema: parameterSchema(field),
  });
  const path = inPath.map((name) => desc.input.fields.find((field) => field.name === name)!);
  const query = route.hasBody
    ? []
    : desc.input.fields.filter(({ name, message }) => !inPath.includes(name) && message === undefined);
  return [...path.map((field) => describe(field, "path")), ...query.map((field) => describe(field, "query"))];
}

/** Path parameters have the names that requests have. */
function templateOf({ desc }: ServedMethod, { template }: HttpRoute): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    return `{${desc.input.fields.find((field) => field.name === name)?.jsonName ?? name}}`;
  });
}

function json(schema: JsonSchema): object {
  return { "application/json": { schema } };
}

const failureSchema: JsonSchema = {
  description: "The one error body of every route.",
  type: "object",
  required: ["success", "error", "errorCode"],
  properties: {
    success: { const: false },
    error: { type: "string", description: "A sentence for a person." },
    errorCode: { type: "string", enum: Object.keys(catalogue), description: "The reason, for a machine." },
    retryAfter: { type: "integer", minimum: 0, description: "Whole seconds after which trying again makes sense." },
  },
};

const identityHeaders = {
  identity: "ed25519:0x and the public key, 64 hex digits.",
  timestamp: "Milliseconds since the epoch, within 5 minutes of the node's clock.",
  signature:
    "0x and 128 hex digits: Ed25519 over the lower-case hex SHA-256 of the identity as it is sent, a colon and the timestamp.",
};
