/** The status page: one document for an operator's eyes, which may run its own script and ask its own node, no more. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Page } from "./pages.js";

const read = (name: string): string => readFileSync(new URL(`../../../assets/${name}`, import.meta.url), "utf8");
const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export function createStatusPage(): Page {
  const [style, script] = [read("status.css"), read("status.js")];
  return {
    contentType: "text/html; charset=utf-8",
    policy: `script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; connect-src 'self'`,
    load: () =>
      read("status.html")
        .replace(/<style>[^]*?<\/style>/, () => `<style>${style}</style>`)
        .replace(/<script>[^]*?<\/script>/, () => `<script>${script}</script>`),
  };
}
