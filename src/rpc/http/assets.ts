/** What pages are made of: files beside the compiled code, whose style and script stand in the page itself. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The text of these files, one after the other. */
export function readAssets(...names: readonly string[]): string {
  return names.map((name) => readFileSync(new URL(`../../../assets/${name}`, import.meta.url), "utf8")).join("\n");
}

/** What a policy names a style or script by that stands in the page. */
export function assetHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Puts style and script into the elements of a page that wait for them. */
export function inlined(html: string, style: string, script: string): string {
  return html
    .replace(/<style>[^]*?<\/style>/, () => `<style>${style}</style>`)
    .replace(/<script>[^]*?<\/script>/, () => `<script>${script}</script>`);
}
