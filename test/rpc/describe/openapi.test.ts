/** /openapi.json, compared with the contract and with the output of the encoder. */
import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { Ajv2020 } from "ajv/dist/2020.js";
import test from "ava";
import { caching, Caching, probe, raw_json } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { http } from "../../../gen/google/api/annotations_pb.js";
import { jsonEncoder } from "../../../src/rpc/codec/json-encoder.js";
import type { Media, Operation as PageOperation } from "../../../src/rpc/describe/docs-page.js";
import { createSchemas } from "../../../src/rpc/describe/json-schema.js";
import { errorCatalog, type Reason } from "../../../src/rpc/errors.js";
import { contractServices } from "../../helpers/process/contract-files.js";
import { askJson } from "../../helpers/wire/plain-client.js";
import { createRandom, randomMessage } from "../../helpers/wire/random-message.js";
import { startTestNode } from "../../helpers/nodes/start-node.js";
import { fileTeardown } from "../../helpers/nodes/teardown.js";
import { likeLists } from "../../helpers/like-lists.js";

interface Answer {
  readonly $ref?: string;
  readonly description: string;
  readonly headers?: object;
  readonly content: { readonly "application/json": Media };
}

interface Operation extends Omit<PageOperation, "requestBody" | "responses"> {
  readonly security?: readonly object[];
  readonly requestBody?: Pick<Answer, "content">;
  readonly responses: Readonly<Record<string, Answer>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties: object; readonly required?: string[] }>>;
    readonly responses: Readonly<Record<string, Answer>>;
  };
}

const routed = (await contractServices())
  .flatMap((service) => service.methods)
  .filter((method) => hasOption(method, http));
const outputs = routed.map(({ output }) => output);
const probes = new Set(
  routed
    .filter((method) => getOption(method, probe))
    .map(({ parent, localName }) => `${parent.typeName.split(".").at(-3)}.${localName}`),
);

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000);

const fileScope = fileTeardown();
let document: Document;
let operations: Operation[];

test.before(async () => {
  const { port } = await startTestNode(fileScope, { "tlsnotary-enabled": true });
  document = await askJson<Document>(port, "/openapi.json");
  operations = Object.values(document.paths).flatMap((path) => Object.values(path));
});

/** Returns the responses of an operation, with references resolved. */
function answersOf({ responses }: Operation): [status: string, answer: Answer][] {
  return Object.entries(responses).map(([status, answer]) => [
    status,
    answer.$ref === undefined ? answer : document.components.responses[answer.$ref.split("/").at(-1)!]!,
  ]);
}

/** Returns true if the operation responds at this status with its regular body, or with an error body. */
function isRefusal({ responses }: Operation, status: number): boolean {
  return responses[status]?.description.startsWith("Done; ") === true;
}

const reasonsIn = (text: string): Reason[] =>
  [...text.matchAll(/\b[A-Z]+(?:_[A-Z]+)*\b/g)].map(([word]) => word as Reason).filter((word) => word in errorCatalog);

test("gives each operation a unique summary that fits a phone's line", (t) => {
  for (const { summary, operationId } of operations) {
    t.true(summary.length <= 48, `${operationId}: ${summary}`);
  }
  t.is(new Set(operations.map(({ summary }) => summary)).size, operations.length);
});

test("marks fields nullable only if they can be unset", (t) => {
  const { schemas } = document.components;
  const at = (schema: string, name: string): unknown =>
    (schemas[schema]!.properties as Readonly<Record<string, unknown>>)[name];
  t.like(at("health.HealthSnapshot", "boot"), { $ref: "#/components/schemas/health.Boot" });
  t.like(at("health.HealthSnapshot", "main_loop"), { $ref: "#/components/schemas/health.MainLoop" });
  t.like(at("storage.GetProgramResponse", "acl"), { $ref: "#/components/schemas/storage.AccessControl" });
  t.like(at("storage.GetProgramResponse", "createdAt"), { type: "string", format: "date-time" });
  likeLists(t, at("health.Subsystem", "lastError"), {
    anyOf: [{ $ref: "#/components/schemas/health.ErrorEvent" }, { type: "null" }],
  });
  t.like(at("zk.GetMerkleProofResponse", "proof"), { $ref: "#/components/schemas/zk.MerkleProof" });
  likeLists(t, at("health.Boot", "current"), { type: ["string", "null"] });
});

test("marks only required fields as required", (t) => {
  const required = (path: string): string[] =>
    document.paths[path]!.get!.parameters.filter((parameter) => parameter.required).map(({ name }) => name);
  t.deepEqual(required("/storage-program/search"), ["q"]);
  t.deepEqual(required("/storage-program/owner/{owner}"), ["owner"]);
  t.deepEqual(required("/zk/merkle/proof/{commitment}"), ["commitment"]);
  t.deepEqual(required("/zk/merkle-root"), []);
  t.deepEqual(document.components.schemas["chain.SubmitTransactionRequest.Input"]!.required, ["transaction"]);
  t.deepEqual(document.components.schemas["attestation.VerifyAttestationRequest.Input"]!.required, ["attestation"]);
});

test("lists the errors of the rpc and of every request by status for each operation", (t) => {
  t.true(operations.length > 30);
  for (const operation of operations) {
    const failures = answersOf(operation).filter(([status]) => Number(status) >= 400);
    const named = new Set<Reason>();
    for (const [status, { description, content }] of failures) {
      for (const reason of reasonsIn(description.replace(/: [^`]*/g, " "))) {
        t.is(String(errorCatalog[reason].httpStatus), status, operation.operationId);
        named.add(reason);
      }
      t.true(
        JSON.stringify(content["application/json"].schema).includes("#/components/schemas/Failure") ||
          description.startsWith("Done; "),
        `${operation.operationId} ${status}`,
      );
    }
    t.true(operation.security === undefined || named.has("INVALID_SIGNATURE"), operation.operationId);
    t.true(!probes.has(operation.operationId) || !named.has("INVALID_SIGNATURE"), operation.operationId);
    for (const reason of ["RATE_LIMITED", "OVERLOADED", "INTERNAL_ERROR"] as const) {
      t.true(named.has(reason) || isRefusal(operation, errorCatalog[reason].httpStatus), operation.operationId);
    }
    t.true(!probes.has(operation.operationId) || !named.has("DATABASE_UNAVAILABLE"), operation.operationId);
    const [, errors = ""] = /Errors: (.*)/s.exec(operation.description ?? "") ?? [];
    for (const reason of reasonsIn(errors)) {
      t.true(named.has(reason), `${operation.operationId} is said to fail with ${reason}`);
    }
  }
});

test("documents 304 and cache headers for cacheable operations only", (t) => {
  const cacheable = new Set(
    routed
      .filter((method) => getOption(method, caching) !== Caching.UNSPECIFIED)
      .map(({ parent, localName }) => `${parent.typeName.split(".").at(-3)}.${localName}`),
  );
  t.true(cacheable.size > 15);
  const headers = {
    ETag: { $ref: "#/components/headers/ETag" },
    "Cache-Control": { $ref: "#/components/headers/Cache-Control" },
  };
  for (const operation of operations) {
    const isCacheable = cacheable.has(operation.operationId);
    t.deepEqual(operation.responses["200"]?.headers, isCacheable ? headers : undefined, operation.operationId);
    const notModified = answersOf(operation).find(([status]) => status === "304")?.[1];
    t.deepEqual(notModified?.headers, isCacheable ? headers : undefined, operation.operationId);
    t.is(notModified?.content, undefined);
  }
});

test("has an example for every parameter, body and response that matches its schema", (t) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "openapi.json");
  const fits = (schema: object, example: unknown, place: string): void => {
    const text = JSON.stringify(schema).replaceAll("#/components/", "openapi.json#/components/");
    t.not(example, undefined, place);
    t.true(ajv.validate(JSON.parse(text) as object, example), `${place}: ${ajv.errorsText()}`);
  };
  for (const operation of operations) {
    const { operationId, parameters, requestBody } = operation;
    for (const { name, schema, example } of parameters) {
      fits(schema, example, `${operationId}, ${name}`);
    }
    for (const [status, { content }] of answersOf(operation).filter(([status]) => status !== "304")) {
      if (!("application/json" in content)) {
        t.deepEqual(Object.keys(content), ["text/event-stream", "application/jsonl"], operationId);
        continue;
      }
      const { schema, examples } = content["application/json"];
      if (status === "200" || examples !== undefined) {
        fits(schema, examples?.example.value, `${operationId}, ${status}`);
      }
    }
    if (requestBody !== undefined) {
      const { schema, examples } = requestBody.content["application/json"];
      fits(schema, examples?.example.value, `${operationId}, body`);
    }
  }
  const { content } = document.paths["/readyz"]!.get!.responses["503"]!;
  t.like(content["application/json"].examples?.example.value, { status: "failing" });
});

test("matches every encoded message against its schema", (t) => {
  const random = createRandom(seed);
  for (const desc of outputs) {
    const schemas = createSchemas("response", "#/$defs/");
    const root = schemas.message(desc);
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    const validate = ajv.compile({ ...root, $defs: schemas.definitions() });
    for (let round = 0; round < 50; round++) {
      const text = jsonEncoder(desc)(round === 0 ? {} : withJsonTexts(desc, randomMessage(desc, random)));
      validate(JSON.parse(text));
      // No service sends the zero value or an unnamed value of an enum.
      const wrong = (validate.errors ?? []).filter(({ keyword, schema }) => keyword !== "enum" && schema !== null);
      t.deepEqual(wrong, [], `${desc.typeName}, FUZZ_SEED=${seed}: ${text}`);
    }
  }
});

/** Sets fields of raw JSON to valid JSON, because random text is invalid there. */
function withJsonTexts(desc: DescMessage, message: object): object {
  const texts = desc.fields.filter((field) => getOption(field, raw_json)).map(({ localName }) => [localName, "[1.0]"]);
  return { ...message, ...(Object.fromEntries(texts) as object) };
}
