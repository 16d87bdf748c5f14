/**
 * API documentation for people: the OpenAPI document as plain HTML with headings, tables and labels. Reading needs no
 * script; searching and trying do (src/pages/docs/main.js).
 */
import { type FieldLine, listFields, typeOf } from "./fields.js";
import { type Html, html, paragraphs } from "./html.js";
import type { JsonSchema } from "./json-schema.js";

export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: Readonly<Record<string, { readonly name: string; readonly description: string }>>;
  };
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

interface Body {
  readonly content: Readonly<Record<string, Media>>;
}

export interface Media {
  readonly schema: JsonSchema;
  /** Schema of each message of a stream. */
  readonly "x-item-schema"?: JsonSchema;
  readonly examples?: { readonly example: { readonly value: unknown } };
}

type Response = Body & { readonly description: string };

interface RoutedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function renderDocs(document: OpenApiDocument): string {
  const { info, tags, paths, components } = document;
  const routed = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  return html`<main id="main" tabindex="-1">
    <h1>${info.title} ${info.version}: API reference</h1>
    <p>${info.description} <a href="openapi.json">openapi.json</a> describes it for programs.</p>
    <div class="bar">
      <search>
        <label for="search">Search</label>
        <input
          type="search"
          id="search"
          autocomplete="off"
          spellcheck="false"
          placeholder="path, name, field, reason"
        />
        <span id="found" class="dim" role="status"></span>
      </search>
      <nav aria-label="Areas">${tags.map(({ name }) => html`<a href="#area-${name}">${name}</a> `)}</nav>
    </div>
    <noscript><p>Search, code samples and Try require JavaScript.</p></noscript>
    ${renderCaller(components.securitySchemes)}
    ${tags.map(
      ({ name, description = "" }) =>
        html`<section class="area" aria-labelledby="area-${name}">
          <h2 id="area-${name}">${name}</h2>
          ${paragraphs(description)}
          ${routed
            .filter(({ operation }) => operation.tags[0] === name)
            .map((routedOperation) => renderOperation(routedOperation, components))}
        </section> `,
    )}
  </main>`.text;
}

/** Renders the form for the identity headers, with which users can try operations as a caller. */
function renderCaller(schemes: OpenApiDocument["components"]["securitySchemes"]): Html {
  return html`<details id="caller">
    <summary><h2>Caller identity</h2></summary>
    <p>
      Requests are anonymous while these fields are empty. To read programs that are not public, enter the headers that
      <code>gatehouse identity headers</code> prints. Each request of this page then sends them.
    </p>
    ${Object.entries(schemes).map(
      ([, { name, description }]) =>
        html`<div class="parameter">
          <label for="caller-${name}"><code>${name}</code></label>
          <input
            id="caller-${name}"
            name="${name}"
            autocomplete="off"
            spellcheck="false"
            aria-describedby="caller-${name}-is"
          />
          <p id="caller-${name}-is" class="dim">${description}</p>
        </div>`,
    )}
  </details>`;
}

function renderOperation(
  { method, path, operation }: RoutedOperation,
  { schemas, responses }: OpenApiDocument["components"],
): Html {
  const { operationId: id, summary, description = "", requestBody } = operation;
  const all = Object.entries(operation.responses).map(([status, response]) => ({
    status,
    response: "$ref" in response ? responses[response.$ref.split("/").at(-1)!]! : response,
  }));
  const [successes, failures] = [true, false].map((isResponse) =>
    all.filter(({ status, response }) => !bodilessStatuses.has(status) && isResponse === isSuccess(status, response)),
  ) as [typeof all, typeof all];
  return html`<details class="operation" id="${id}">
    <summary>
      <h3>
        <span class="summary">${summary}</span>
        <code><span class="method">${method}</span> ${breakable(path)}</code>
      </h3>
    </summary>
    ${paragraphs(description)}
    <p class="dim">JSON-RPC method: <code>${id}</code></p>
    ${renderForm({ method, path, operation }, schemas)}
    ${requestBody !== undefined && renderBody("Body", id, requestBody, schemas)}
    ${successes.map(({ status, response }) => [
      renderBody(`Response ${status}`, id, response, schemas, response.description),
    ])}
    ${all
      .filter(({ status }) => status === "304")
      .map(
        ({ status, response }) =>
          html`<h4>Response ${status}</h4>
            ${paragraphs(response.description)}`,
      )}
    <h4>Errors</h4>
    <dl>
      ${failures.map(
        ({ status, response }) =>
          html`<dt>${status}</dt>
            <dd>${paragraphs(response.description)}</dd>`,
      )}
    </dl>
  </details> `;
}

/** Statuses that are not errors and have no body to describe. */
const bodilessStatuses: ReadonlySet<string> = new Set(["304", "default"]);

/** Returns true if a status is not an error. Some rpcs report a negative result by the status, with a regular body. */
function isSuccess(status: string, { description }: Response): boolean {
  return status.startsWith("2") || description.startsWith("Done; ");
}

/** Renders the form to try an operation, with an input for each part of the request. */
function renderForm({ method, path, operation }: RoutedOperation, schemas: Schemas): Html {
  const { operationId: id, summary, parameters, requestBody, responses } = operation;
  if (isStream(responses["200"])) {
    return html`<p>The response is a stream without end: use <code>curl -N</code>.</p>`;
  }
  return html`<form data-method="${method}" data-path="${path}" data-rpc="${id}" aria-label="${summary}">
    ${parameters.length > 0 && html`<h4>Parameters</h4>`}
    ${parameters.map((parameter) => renderParameter(`${id}-${parameter.name}`, parameter, schemas))}
    ${
      requestBody !== undefined &&
      html`<div class="parameter">
        <label for="${id}-body">Body, JSON</label>
        <textarea id="${id}-body" name="body" data-in="body" rows="6" spellcheck="false"></textarea>
      </div>`
    }
    <button aria-label="Try: ${summary}">Try</button>
    <div class="response" role="status"></div>
  </form>`;
}

function isStream(response: Operation["responses"][string] | undefined): boolean {
  return response !== undefined && "content" in response && !("application/json" in response.content);
}

function renderParameter(id: string, parameter: Parameter, schemas: Schemas): Html {
  const { name, required = false, description = "", schema, example } = parameter;
  const location = `in the ${parameter.in}, ${typeOf(schema, schemas)}${required ? ", required" : ""}`;
  return html`<div class="parameter">
    <label for="${id}"><code>${name}</code> <span class="dim">${location}</span></label>
    <input
      id="${id}"
      name="${name}"
      data-in="${parameter.in}"
      autocomplete="off"
      spellcheck="false"
      aria-describedby="${id}-is"
      ${required && html`required`}
    />
    <div id="${id}-is" class="dim">
      ${paragraphs(description)}
      ${example !== undefined && html`<p>Example: <code>${typeof example === "string" ? example : JSON.stringify(example)}</code></p>`}
    </div>
  </div>`;
}

type Schemas = Readonly<Record<string, JsonSchema>>;

/** Renders the fields and an example of a request or response body. */
function renderBody(title: string, id: string, { content }: Body, schemas: Schemas, description = ""): Html {
  const types = Object.keys(content);
  const { schema, "x-item-schema": item, examples } = content[types[0]!]!;
  const heading = `${id}-${title.toLowerCase().replace(" ", "-")}-fields`;
  return html`<h4 id="${heading}">${title}</h4>
    ${paragraphs(description)}
    ${item !== undefined && html`<p>A stream, as ${types.join(" or ")}. Each message is:</p>`}
    <table role="table" aria-labelledby="${heading}">
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col">Field</th>
          <th role="columnheader" scope="col">Type</th>
          <th role="columnheader" scope="col">Description</th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${listFields(item ?? schema, schemas).map(renderField)}
      </tbody>
    </table>
    ${
      examples !== undefined &&
      html`<details class="example">
        <summary>Example</summary>
        <pre tabindex="0" role="region" aria-label="Example: ${title} of ${id}">
${JSON.stringify(examples.example.value, null, 2)}</pre>
      </details>`
    }`;
}

function renderField({ path, type, isRequired, description }: FieldLine): Html {
  return html`<tr role="row">
    <td role="cell"><code>${path === "" ? "entire value" : breakable(path)}</code></td>
    <td role="cell" class="dim">${type}${!isRequired && ", may be missing"}</td>
    <td role="cell">${description}</td>
  </tr>`;
}

/** Returns a path that may wrap after each of its segments. */
function breakable(path: string): Html[] {
  return path.split(/(?<=[/.])/).map((part, i) => html`${i > 0 && html`<wbr />`}${part}`);
}
