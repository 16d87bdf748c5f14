/** OpenAPI 3.1 document of the plain HTTP routes, generated from the same descriptors and rules as the routes. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { caching, Caching } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { isRequired } from "../codec/fields.js";
import { commentOf, described, summaryOf } from "./comments.js";
import { type Example, exampleOf } from "./examples.js";
import { createFailureResponses, failureReference, failureSchema, failuresOf } from "./failures.js";
import { type HttpRoute, pathFieldsOf, readHttpRoutes } from "../http/http-rule.js";
import { createSchemas, type JsonSchema, parameterSchema, type Schemas } from "./json-schema.js";
import { streamTypes } from "../http/event-stream.js";
import { areaOf } from "../json-rpc/named-methods.js";
import { fullNameOf, type ServedMethod, type ServedService } from "../service.js";

export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
}

interface SharedParts {
  readonly responses: Schemas;
  readonly requests: Schemas;
  readonly failures: ReturnType<typeof createFailureResponses>;
}

interface Routed {
  readonly served: ServedMethod;
  readonly route: HttpRoute;
  readonly example: Example | undefined;
}

export function describeOpenApi(services: readonly ServedService[], info: DocumentInfo): string {
  const shared: SharedParts = {
    responses: createSchemas("response", "#/components/schemas/"),
    requests: createSchemas("request", "#/components/schemas/"),
    failures: createFailureResponses(),
  };
  const paths: Record<string, Record<string, unknown>> = {};
  const tags: Record<string, unknown>[] = [];
  for (const { desc, methods } of services) {
    const routed: Routed[] = methods.flatMap((served) =>
      readHttpRoutes(served.desc).map((route) => ({
        served,
        route,
        example: exampleOf(fullNameOf(served.desc)),
      })),
    );
    if (routed.length > 0) {
      tags.push({ name: areaOf(desc), ...described(commentOf(desc.typeName)) });
    }
    for (const operation of routed) {
      const path = templateOf(operation);
      paths[path] = { ...paths[path], [operation.route.method.toLowerCase()]: describeOperation(operation, shared) };
    }
  }
  return JSON.stringify({
    openapi: "3.1.0",
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    info: {
      ...info,
      description: "The plain HTTP interface of this node. It serves the same rpcs over gRPC, Connect and JSON-RPC.",
      contact: { name: "The operator of this node" },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    // Relative to the URL of this document, because the node may be mounted below a path.
    servers: [{ url: ".", description: "This node." }],
    // Default for operations: identity headers are ignored.
    security: [],
    tags,
    paths,
    components: describeComponents(shared),
  });
}

function describeComponents({ responses, requests, failures }: SharedParts): object {
  return {
    schemas: { ...responses.definitions(), ...requests.definitions(), Failure: failureSchema },
    responses: { ...failures.definitions(), NotModified: notModified },
    headers: { ETag: etagHeader, "Cache-Control": cacheHeader },
    securitySchemes: Object.fromEntries(
      Object.entries(identityHeaders).map(([name, description]) => [
        name,
        { type: "apiKey", in: "header", name, description },
      ]),
    ),
  };
}

function describeOperation(routed: Routed, shared: SharedParts): object {
  const { desc } = routed.served;
  const comment = commentOf(fullNameOf(desc));
  return {
    operationId: `${areaOf(desc.parent)}.${desc.localName}`,
    tags: [areaOf(desc.parent)],
    summary: summaryOf(comment) ?? desc.name,
    ...described(comment),
    ...(routed.served.identifiesCaller && { security: identitySecurity }),
    parameters: describeParameters(routed),
    ...(routed.route.body !== undefined && { requestBody: describeBody(routed, shared) }),
    responses: {
      200: describeResponse(routed, shared),
      ...(isCached(routed.served) && { 304: { $ref: "#/components/responses/NotModified" } }),
      ...Object.fromEntries(
        failuresOf(routed.served, routed.route).map(([status, reasons]) => [
          status,
          shared.failures.describe(reasons, routed.example?.failures?.[status]),
        ]),
      ),
      ...(routed.served.plainReply !== undefined && { 503: describeRefusal(routed, shared) }),
      default: shared.failures.any,
    },
  };
}

function describeBody({ served, example }: Routed, { requests }: SharedParts): object {
  const schema = requests.message(served.desc.input);
  return { required: true, content: json(schema, example?.body) };
}

function describeResponse(routed: Routed, { responses }: SharedParts): object {
  const { served, route, example } = routed;
  const comment = commentOf(
    route.responseField === undefined ? served.desc.output.typeName : fullNameOf(route.responseField),
  );
  return {
    description: comment === "" ? "Done." : comment,
    ...(isCached(served) && { headers: cachedHeaders }),
    content: route.isStream
      ? streamed(schemaOfResponse(routed, responses))
      : json(schemaOfResponse(routed, responses), example?.response),
  };
}

function isCached({ desc }: ServedMethod): boolean {
  return getOption(desc, caching) !== Caching.UNSPECIFIED;
}

const etagHeader = {
  description:
    "Tag of the state from which the response was created. Send it as If-None-Match to receive 304 while that state is " +
    "unchanged. Absent if the response is not cacheable.",
  schema: { type: "string" },
};
const cacheHeader = {
  description:
    "Cache directives: `public, no-cache` if the response is the same for all callers without an identity, " +
    "`public, max-age=31536000, immutable` if it can never change, otherwise `private, no-store`.",
  schema: { type: "string" },
};
const cachedHeaders = Object.fromEntries(
  ["ETag", "Cache-Control"].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
);
const notModified = {
  description: "The response is the same as the one that If-None-Match refers to.",
  headers: cachedHeaders,
};

function schemaOfResponse({ served, route }: Routed, responses: Schemas): JsonSchema {
  return route.responseField === undefined
    ? responses.message(served.desc.output)
    : responses.field(route.responseField);
}

/**
 * Describes a negative response: a status 503 with a complete response body, or with an error body if 503 is also an
 * error status of the rpc.
 */
function describeRefusal(routed: Routed, { responses }: SharedParts): object {
  const response = schemaOfResponse(routed, responses);
  const example = routed.example?.refusal;
  const mayFail = failuresOf(routed.served, routed.route).some(([status]) => status === 503);
  return {
    description: "Done; the result is negative.",
    content: json(mayFail ? { anyOf: [response, failureReference] } : response, example),
  };
}

function describeParameters({ served: { desc }, route, example }: Routed): object[] {
  const inPath = pathFieldsOf(route.template);
  const describe = (field: DescField, where: "path" | "query"): object => ({
    name: field.jsonName,
    in: where,
    ...(isRequired(field) && { required: true }),
    ...described(commentOf(fullNameOf(field))),
    schema: parameterSchema(field),
    ...(example?.parameters?.[field.jsonName] !== undefined && { example: example.parameters[field.jsonName] }),
  });
  const path = inPath.map((name) => desc.input.fields.find((field) => field.name === name)!);
  const query =
    route.body !== undefined
      ? []
      : desc.input.fields.filter(({ name, message }) => !inPath.includes(name) && message === undefined);
  return [...path.map((field) => describe(field, "path")), ...query.map((field) => describe(field, "query"))];
}

/** Returns the template with the JSON names of the path parameters. */
function templateOf({ served: { desc }, route: { template } }: Routed): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    return `{${desc.input.fields.find((field) => field.name === name)?.jsonName ?? name}}`;
  });
}

function json(schema: JsonSchema, example?: unknown): object {
  return {
    "application/json": { schema, ...(example !== undefined && { examples: { example: { value: example } } }) },
  };
}

/**
 * Returns the content of a stream: text, for tools without stream support, and the schema of each message as an
 * extension.
 */
function streamed(item: JsonSchema): object {
  const schema = { type: "string" };
  return Object.fromEntries(streamTypes.map((type) => [type, { schema, "x-item-schema": item }]));
}

/** Required identity headers. Without `network`, they are valid on every network, and a node may reject them. */
const signedHeaders = ["identity", "timestamp", "signature"] as const;

const identityHeaders = {
  identity: "ed25519:0x and the public key, 64 hex digits.",
  timestamp: "Milliseconds since the epoch, at most 5 minutes before the node's clock and 60 seconds after it.",
  network:
    "0x and 64 hex digits: the genesis hash, as returned by GET /chain/head. The signature is then valid on that network only.",
  signature:
    "0x and 128 hex digits: Ed25519 over the lower-case hex SHA-256 of gatehouse-identity:<network>:<identity>:<timestamp>, each as it is sent; without the header network, of <identity>:<timestamp>.",
};

/** Alternatives for authentication: none, or either set of headers. */
const identitySecurity = [{}, requirement(...signedHeaders, "network"), requirement(...signedHeaders)];

function requirement(...names: readonly (keyof typeof identityHeaders)[]): object {
  return Object.fromEntries(names.map((name) => [name, []]));
}
