/**
 * API documentation for people: the OpenAPI document as plain HTML with headings, lists and labels. Reading needs no
 * script; searching, code samples and sending do (src/pages/docs/main.js).
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
  /** Alternatives for authentication; missing if the operation ignores the identity of the caller. */
  readonly security?: readonly object[];
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
  /** Example of an error. */
  readonly example?: unknown;
}

type Response = Body & { readonly description: string };

interface RoutedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/**
 * Renders the content of the page.
 *
 * @param grpcNames names of the rpcs in gRPC, such as `gatehouse.info.v1.InfoService/GetInfo`, by operation id.
 */
export function renderDocs(document: OpenApiDocument, grpcNames: ReadonlyMap<string, string>): string {
  const { info, tags, paths, components } = document;
  const routed = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const areas = tags.map(({ name, description = "" }) => ({
    ...{ name, description },
    operations: routed.filter(({ operation }) => operation.tags[0] === name),
  }));
  return html`<div class="docs">
    <nav class="side" aria-label="Operations">
      <details id="contents" open>
        <summary>Operations</summary>
        <label class="unseen" for="search">Search the operations</label>
        <input
          type="search"
          id="search"
          autocomplete="off"
          spellcheck="false"
          placeholder="Path, field, reason, name"
        />
        <p id="found" class="dim" role="status"></p>
        ${areas.map(
          ({ name, operations }) =>
            html`<div class="area-links">
              <a class="area-link" href="#area-${name}">${name}</a>
              <ul>
                ${operations.map(
                  ({ method, path, operation }) =>
                    html`<li>
                      <a href="#${operation.operationId}" title="${operation.summary}">${renderRoute(method, path)}</a>
                    </li>`,
                )}
              </ul>
            </div>`,
        )}
      </details>
    </nav>
    <main id="main" tabindex="-1">
      <h1>API reference</h1>
      <p>
        ${info.title} ${info.version}. ${info.description} <a href="openapi.json">openapi.json</a> describes it for
        programs.
      </p>
      <noscript><p>Search, code samples and Send require JavaScript.</p></noscript>
      ${renderCaller(components.securitySchemes)}
      ${areas.map(
        ({ name, description, operations }) =>
          html`<section class="area" aria-labelledby="area-${name}">
            <h2 id="area-${name}">${name}</h2>
            ${paragraphs(description)}
            ${operations.map((routedOperation) =>
              renderOperation(routedOperation, components, grpcNames.get(routedOperation.operation.operationId)),
            )}
          </section> `,
      )}
    </main>
  </div>`.text;
}

function renderRoute(method: string, path: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span> <code>${breakable(path)}</code>`;
}

/** Renders the identity with which the page sends requests. */
function renderCaller(schemes: OpenApiDocument["components"]["securitySchemes"]): Html {
  return html`<section id="caller" aria-labelledby="caller-h">
    <h2 id="caller-h">Caller identity</h2>
    <div class="columns">
      <div>
        <p>
          Most operations work without an identity. To read programs that are not public,
          <a href="explore#/">sign in</a> once for all pages of this node, or paste the line that the command prints.
          The line is valid for five minutes.
        </p>
        <p id="who-calls" role="status">Requests of this page are anonymous.</p>
        <details class="fields">
          <summary>The four headers</summary>
          <ul>
            ${Object.values(schemes).map(
              ({ name, description }) =>
                html`<li>
                  <code>${name}</code>
                  <p>${description}</p>
                </li>`,
            )}
          </ul>
        </details>
      </div>
      <div>
        <pre tabindex="0" role="region" aria-label="Command" data-language="shell">
gatehouse identity headers --key alice.key</pre>
        <label for="line">Line that the command prints</label>
        <input
          id="line"
          autocomplete="off"
          spellcheck="false"
          placeholder="-H 'identity: ed25519:0x…' -H 'timestamp: …' …"
          aria-describedby="line-is"
        />
        <p id="line-is" role="status"></p>
      </div>
    </div>
  </section>`;
}

function renderOperation(
  { method, path, operation }: RoutedOperation,
  { schemas, responses }: OpenApiDocument["components"],
  grpcName = "",
): Html {
  const { operationId: id, summary, description = "", parameters, requestBody, security } = operation;
  const all = Object.entries(operation.responses).map(([status, response]) => ({
    status,
    response: "$ref" in response ? responses[response.$ref.split("/").at(-1)!]! : response,
  }));
  const [successes, failures] = [true, false].map((isResponse) =>
    all.filter(({ status, response }) => !bodilessStatuses.has(status) && isResponse === isSuccess(status, response)),
  ) as [typeof all, typeof all];
  const isStream = !("application/json" in successes[0]!.response.content);
  return html`<section class="operation" id="${id}" aria-labelledby="${id}-h">
    <h3 id="${id}-h"><a href="#${id}">${renderRoute(method, path)}</a></h3>
    <form
      class="columns"
      data-method="${method}"
      data-path="${path}"
      data-rpc="${id}"
      data-grpc="${grpcName}"
      ${isStream && html`data-stream="true"`}
      ${security !== undefined && html`data-identity="true"`}
    >
      <div class="text">
        <p class="summary">${summary}.</p>
        ${paragraphs(description.slice(summary.length + 1).trim())}
        <p class="dim">JSON-RPC method: <code>${id}</code></p>
        ${parameters.length > 0 && html`<h4>Parameters</h4>`}
        ${parameters.map((parameter) => renderParameter(`${id}-${parameter.name}`, parameter, schemas))}
        ${requestBody !== undefined && renderRequestBody(id, requestBody, schemas)}
        ${successes.map(({ status, response }) => renderFields(`Response ${status}`, id, response, schemas))}
        ${all
          .filter(({ status }) => status === "304")
          .map(
            ({ status, response }) =>
              html`<details class="fields">
                <summary>Response ${status}</summary>
                ${paragraphs(response.description)}
              </details>`,
          )}
        <details class="errors">
          <summary>Errors <span class="dim">${failures.map(({ status }) => status).join(", ")}</span></summary>
          <dl>
            ${failures.map(
              ({ status, response }) =>
                html`<dt>${status}</dt>
                  <dd>${paragraphs(response.description)} ${renderExample(`Error ${status} of ${id}`, response)}</dd>`,
            )}
          </dl>
        </details>
      </div>
      <div class="panel">
        <div class="sample" hidden></div>
        ${
          isStream
            ? html`<p class="dim">The response is a stream without end. Run a sample to see it.</p>`
            : html`<p class="send" hidden><button aria-label="Send: ${method} ${path}">Send</button></p>`
        }
        <div class="response" role="status"></div>
        ${successes.map(({ status, response }) =>
          renderExample(`Example of a response ${status}`, response, `Example of a response ${status}: ${id}`),
        )}
      </div>
    </form>
  </section> `;
}

/** Statuses that are not errors and have no body to describe. */
const bodilessStatuses: ReadonlySet<string> = new Set(["304", "default"]);

/** Returns true if a status is not an error. Some rpcs report a negative result by the status, with a regular body. */
function isSuccess(status: string, { description }: Response): boolean {
  return status.startsWith("2") || description.startsWith("Done; ");
}

function renderParameter(id: string, parameter: Parameter, schemas: Schemas): Html {
  const { name, required = false, description = "", schema, example } = parameter;
  const type = typeOf(schema, schemas);
  const shown = example === undefined ? undefined : typeof example === "string" ? example : JSON.stringify(example);
  return html`<div class="parameter">
    <label for="${id}"
      ><code>${name}</code>
      <span class="dim">in the ${parameter.in}, ${type}</span>
      ${required && html`<span class="required">required</span>`}</label
    >
    <div id="${id}-is" class="dim">${paragraphs(description)}</div>
    <input
      id="${id}"
      name="${name}"
      data-in="${parameter.in}"
      data-type="${schema["type"] === "array" ? "list" : type}"
      autocomplete="off"
      spellcheck="false"
      aria-describedby="${id}-is"
      ${shown !== undefined && typeof example !== "object" && name !== "pageToken" && html`data-example="${shown}"`}
      ${required && html`required`}
    />
    <p class="origin dim"></p>
  </div>`;
}

type Schemas = Readonly<Record<string, JsonSchema>>;

/** Renders the fields of a request body, and the text area for its JSON. */
function renderRequestBody(id: string, body: Body, schemas: Schemas): Html {
  const [media] = Object.values(body.content);
  return html`<h4>Body</h4>
    <div class="parameter">
      <label for="${id}-body">Body, JSON</label>
      <textarea id="${id}-body" name="body" data-in="body" rows="8" spellcheck="false">
${media!.examples && JSON.stringify(media!.examples.example.value, null, 2)}</textarea>
      <p class="origin dim">Documented example, which is not of this node.</p>
    </div>
    ${renderFields("Fields of the body", id, { ...body, description: "" }, schemas)}`;
}

/** Renders the fields of a request or response body. */
function renderFields(title: string, id: string, { content, description }: Response, schemas: Schemas): Html {
  const types = Object.keys(content);
  const { schema, "x-item-schema": item } = content[types[0]!]!;
  return html`<details class="fields">
    <summary>${title}</summary>
    ${paragraphs(description)}
    ${item !== undefined && html`<p>A stream, as ${types.join(" or ")}. Each message is:</p>`}
    <ul aria-label="${title}: ${id}">
      ${listFields(item ?? schema, schemas).map(renderField)}
    </ul>
  </details>`;
}

function renderField({ path, type, isRequired, description }: FieldLine): Html {
  return html`<li>
    <code>${path === "" ? "entire value" : breakable(path)}</code>
    <span class="dim">${type}${!isRequired && ", may be missing"}</span>
    ${description !== "" && html`<p>${description}</p>`}
  </li>`;
}

/** Renders the example of a response, if there is one. */
function renderExample(title: string, { content }: Body, label = title): Html | false {
  const [media] = Object.values(content);
  const example = media?.examples === undefined ? media?.example : media.examples.example.value;
  return (
    example !== undefined &&
    html`<div class="example">
      <p class="caption">${title}</p>
      <pre tabindex="0" role="region" aria-label="${label}" data-language="json">
${JSON.stringify(example, null, 2)}</pre>
    </div>`
  );
}

/** Returns a path that may wrap after each of its segments. */
function breakable(path: string): Html[] {
  return path.split(/(?<=[/.])/).map((part, i) => html`${i > 0 && html`<wbr />`}${part}`);
}
