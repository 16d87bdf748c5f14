/** Documentation of the plain HTTP routes, for machines and for people. */
import { assetHash, inlined, readAssets } from "../http/assets.js";
import type { Pages } from "../http/pages.js";
import type { ServedService } from "../service.js";
import type { CommentOf } from "./comments.js";
import { type OpenApiDocument, renderDocs } from "./docs-page.js";
import { exampleOf } from "./examples.js";
import { describeOpenApi, type DocumentInfo } from "./openapi.js";

export function createApiDocs(services: readonly ServedService[], info: DocumentInfo, commentOf: CommentOf): Pages {
  // Cached, because building the document blocks the event loop for half a second on a small machine.
  let described: string | undefined;
  const describe = (): string => (described ??= describeOpenApi(services, info, commentOf, exampleOf));
  const style = readAssets("common.css", "docs.css");
  const script = readAssets("docs.js");
  return {
    "/openapi.json": { contentType: "application/json; charset=utf-8", load: describe },
    "/docs": {
      contentType: "text/html; charset=utf-8",
      policy: `script-src ${assetHash(script)}; style-src ${assetHash(style)}; img-src data:; connect-src 'self'; form-action 'none'`,
      load: () =>
        inlined(readAssets("docs.html"), style, script).replace("<!--BODY-->", () =>
          renderDocs(JSON.parse(describe()) as OpenApiDocument),
        ),
    },
  };
}
