/** Documentation of the plain HTTP routes, for machines and for people. */
import { createPage } from "../http/html-pages.js";
import type { Pages } from "../http/pages.js";
import { areaOf } from "../json-rpc/named-methods.js";
import type { ServedService } from "../service.js";
import { type OpenApiDocument, renderDocs } from "./docs-page.js";
import { describeOpenApi, type DocumentInfo } from "./openapi.js";

export function createApiDocs(services: readonly ServedService[], info: DocumentInfo): Pages {
  // Cached, because building the document blocks the event loop for half a second on a small machine.
  let described: string | undefined;
  const describe = (): string => (described ??= describeOpenApi(services, info));
  return {
    "/openapi.json": { contentType: "application/json; charset=utf-8", load: describe },
    "/docs": createPage({
      html: "docs.html",
      styles: ["docs.css"],
      scripts: ["docs.js"],
      body: () => renderDocs(JSON.parse(describe()) as OpenApiDocument, nameRpcs(services)),
    }),
  };
}

/** Returns the names of the rpcs in gRPC by operation id. */
function nameRpcs(services: readonly ServedService[]): ReadonlyMap<string, string> {
  return new Map(
    services.flatMap(({ desc, methods }) =>
      methods.map(
        ({ desc: { localName, name } }) => [`${areaOf(desc)}.${localName}`, `${desc.typeName}/${name}`] as const,
      ),
    ),
  );
}
