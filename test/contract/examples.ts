/** Examples of the API documents, built from requests and responses of contract cases. */
import { create, type DescField, getOption } from "@bufbuild/protobuf";
import { readFile, writeFile } from "node:fs/promises";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { http } from "../../gen/google/api/annotations_pb.js";
import type { Example } from "../../src/rpc/describe/examples.js";
import { referenceJson } from "../helpers/wire/reference-json.js";
import { type ContractCase, contractCase } from "./case.js";
import { withShownPending } from "./data.js";
import { streams } from "./streams.js";

/** Additional requests for examples, sent after the cases. */
export const askedBeside: readonly ContractCase[] = [
  contractCase(HealthService.method.getLiveness, "/livez?exclude=main_loop", "one left out", {
    exclude: ["main_loop"],
  }),
  contractCase(InfoService.method.listPeers, "/peerlist?offset=1", "the next page", { offset: 1 }),
  contractCase(StorageService.method.searchPrograms, "/storage-program/search?q=exotic&limit=1&offset=1", "a page", {
    query: "exotic",
    limit: 1,
    offset: 1,
  }),
  contractCase(ChainService.method.listPendingTransactions, "/chain/pending?limit=10", "one", { limit: 10 }),
];

/** Plain HTTP response to a case. */
export interface Answered {
  readonly contractCase: ContractCase;
  readonly status: number;
  readonly body: unknown;
}

/** Examples by full name of the rpc. */
export type Examples = Readonly<Record<string, Example>>;

const file = "src/pages/examples.json";

/** Reads the examples that the node serves. */
export async function readExamples(): Promise<Examples> {
  return JSON.parse(await readFile(file, "utf8")) as Examples;
}

/** Writes the examples that the node serves; `npm run format` formats the file. */
export async function writeExamples(examples: Examples): Promise<void> {
  await writeFile(file, withShownPending(JSON.stringify(examples)));
}

/** Builds the examples from every case and its response. */
export function makeExamples(answers: readonly Answered[]): Examples {
  const byRpc = new Map<string, Answered[]>();
  for (const answered of answers) {
    const { parent, name } = answered.contractCase.method;
    const key = `${parent.typeName}.${name}`;
    byRpc.set(key, [...(byRpc.get(key) ?? []), answered]);
  }
  return Object.fromEntries([
    ...[...byRpc].map(([name, ofRpc]) => [name, makeExample(ofRpc)]),
    // A stream has no single body to show.
    ...streams.flatMap(({ stream: { parent, name }, plain }) =>
      plain?.parameters === undefined ? [] : [[`${parent.typeName}.${name}`, { parameters: plain.parameters }]],
    ),
  ]) as Examples;
}

/**
 * Titles of cases that tell more than the first of their rpc, whose program is hard to read on purpose. An answer with
 * `"type":"array"` is none of them: a linter takes it for a schema.
 */
const telling: readonly string[] = ["restricted, friend", 'value of "nested"', "object", "one"];

function makeExample(answers: readonly Answered[]): Example {
  const withRequest = answers.filter(
    ({ contractCase, body }) => contractCase.request !== undefined && !isFailure(body),
  );
  const done = withRequest.filter(({ status }) => status === 200);
  const shown = done.find(({ contractCase }) => telling.includes(contractCase.title)) ?? done[0]!;
  const parameters = Object.assign(
    {},
    ...[...withRequest, shown].map(({ contractCase }) => parametersOf(contractCase)),
  ) as object;
  const failures: Record<string, unknown> = {};
  for (const { status, body } of answers.filter(({ body }) => isFailure(body))) {
    failures[status] ??= body;
  }
  const { body } = shown.contractCase;
  const negative = withRequest.find(({ status }) => status === 503);
  return {
    ...(body === undefined
      ? Object.keys(parameters).length > 0 && { parameters: parameters as Record<string, unknown> }
      : { body: JSON.parse(body) as unknown }),
    response: shown.body,
    ...(negative !== undefined && { refusal: negative.body }),
    ...(Object.keys(failures).length > 0 && { failures }),
  };
}

function isFailure(body: unknown): boolean {
  return (body as { success?: boolean } | null)?.success === false;
}

/** Returns the parameters of a case, as written in its URL. */
function parametersOf({ method, request, body }: ContractCase): Record<string, unknown> {
  if (body !== undefined || getOption(method, http).pattern.case !== "get") {
    return {};
  }
  const given = request as Readonly<Record<string, unknown>>;
  const values = JSON.parse(referenceJson(method.input, create(method.input, request as never))) as object;
  const isGiven = ({ localName }: DescField): boolean => given[localName] !== undefined;
  return Object.fromEntries(
    method.input.fields
      .filter(isGiven)
      .map(({ jsonName }) => [jsonName, (values as Readonly<Record<string, unknown>>)[jsonName]]),
  );
}
