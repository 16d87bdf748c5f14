/** Assets of HTML pages: files from the assets directory, with style and script inlined into the page. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** Returns the concatenated text of these files. */
export function readAssets(...names: readonly string[]): string {
  return names.map((name) => readFileSync(new URL(`../../../assets/${name}`, import.meta.url), "utf8")).join("\n");
}

/** Returns the hash by which a Content-Security-Policy permits an inline style or script. */
export function assetHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Inserts style and script into the placeholder elements of a page. */
export function inlined(html: string, style: string, script: string): string {
  return html
    .replace(/<style>[^]*?<\/style>/, () => `<style>${style}</style>`)
    .replace(/<script>[^]*?<\/script>/, () => `<script>${script}</script>`);
}
