/** The description of the plain HTTP routes, for machines and, with a renderer that is served from here, for people. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { CommentOf } from "./comments.js";
import { exampleOf } from "./examples.js";
import { describeOpenApi, type DocumentInfo } from "./openapi.js";
import type { Pages } from "../http/pages.js";
import type { ServedService } from "../service.js";

/** Calls go to where the page is, which may be below a path that only its reader's browser knows. */
const script = `
const base = new URL(".", location.href).href.slice(0, -1);
for (const name of ["server-url", "default-api-server"]) {
  document.querySelector("rapi-doc").setAttribute(name, base);
}
`;
const scriptHash = createHash("sha256").update(script).digest("base64");

const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gatehouse: interface</title>
<link rel="icon" href="data:,">
<script type="module" src="docs/rapidoc.js"></script>
</head>
<body>
<rapi-doc spec-url="openapi.json" load-fonts="false" show-header="false" render-style="read" theme="light"
  allow-spec-url-load="false" allow-spec-file-load="false" allow-server-selection="false" schema-style="table">
<noscript>This page needs JavaScript; <a href="openapi.json">openapi.json</a> is the same for machines.</noscript>
</rapi-doc>
<script>${script}</script>
</body>
</html>
`;

export function createApiDocs(services: readonly ServedService[], info: DocumentInfo, commentOf: CommentOf): Pages {
  return {
    "/openapi.json": {
      contentType: "application/json; charset=utf-8",
      load: () => describeOpenApi(services, info, commentOf, exampleOf),
    },
    "/docs": {
      contentType: "text/html; charset=utf-8",
      policy: `script-src 'self' 'sha256-${scriptHash}'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'`,
      load: () => docsPage,
    },
    "/docs/rapidoc.js": {
      contentType: "text/javascript; charset=utf-8",
      load: () => readFileSync(new URL("../../../assets/rapidoc.js", import.meta.url)),
    },
  };
}
