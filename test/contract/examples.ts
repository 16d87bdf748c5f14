/** Examples of the API documents, built from requests and responses of contract cases. */
import { create, type DescField, getOption } from "@bufbuild/protobuf";
import { readFile, writeFile } from "node:fs/promises";
import { http } from "../../gen/google/api/annotations_pb.js";
import type { Example } from "../../src/rpc/describe/examples.js";
import { referenceJson } from "../helpers/wire/reference-json.js";
import { type ContractCase, contractCase } from "./case.js";
import { withStablePending } from "./data.js";
import { streams } from "./streams.js";

/** Additional requests for examples, sent after the cases. */
export const additionalCases: readonly ContractCase[] = [
  contractCase("/livez?exclude=main_loop", "one left out"),
  contractCase("/peerlist?offset=1", "the next page"),
  contractCase("/storage-program/search?q=exotic&limit=1&offset=1", "a page"),
  contractCase("/chain/pending?limit=10", "one"),
];

/** Plain HTTP response to a case. */
export interface CaseResponse {
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
  await writeFile(file, withStablePending(JSON.stringify(examples)));
}

/** Builds the examples from every case and its response. */
export function createExamples(responses: readonly CaseResponse[]): Examples {
  const byRpc = new Map<string, CaseResponse[]>();
  for (const response of responses) {
    const { parent, name } = response.contractCase.method;
    const key = `${parent.typeName}.${name}`;
    byRpc.set(key, [...(byRpc.get(key) ?? []), response]);
  }
  return Object.fromEntries([
    ...[...byRpc].map(([name, ofRpc]) => [name, createExample(ofRpc)]),
    // A stream has no single body to show.
    ...streams.flatMap(({ stream: { parent, name }, plain }) =>
      plain?.parameters === undefined ? [] : [[`${parent.typeName}.${name}`, { parameters: plain.parameters }]],
    ),
  ]) as Examples;
}

/**
 * Titles of cases that are better examples than the first case of their rpc, whose program is hard to read on purpose.
 * No response with `"type":"array"` is listed, because a linter takes it for a schema.
 */
const preferred: readonly string[] = ["restricted, friend", 'value of "nested"', "object", "one"];

function createExample(responses: readonly CaseResponse[]): Example {
  const withRequest = responses.filter(
    ({ contractCase, body }) => contractCase.request !== undefined && !isFailure(body),
  );
  const successful = withRequest.filter(({ status }) => status === 200);
  const shown = successful.find(({ contractCase }) => preferred.includes(contractCase.title)) ?? successful[0]!;
  const parameters = Object.assign(
    {},
    ...[...withRequest, shown].map(({ contractCase }) => parametersOf(contractCase)),
  ) as object;
  const failures: Record<string, unknown> = {};
  for (const { status, body } of responses.filter(({ body }) => isFailure(body))) {
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
  const fields = request as Readonly<Record<string, unknown>>;
  const values = JSON.parse(referenceJson(method.input, create(method.input, request as never))) as object;
  const isSet = ({ localName }: DescField): boolean => fields[localName] !== undefined;
  return Object.fromEntries(
    method.input.fields
      .filter(isSet)
      .map(({ jsonName }) => [jsonName, (values as Readonly<Record<string, unknown>>)[jsonName]]),
  );
}
