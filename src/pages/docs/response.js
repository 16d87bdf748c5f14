/** Shows the response to a request: status, reason, headers and body, as the node sent them. */
import { h } from "../explore/dom.ts";
import { indentJson, showCode } from "./highlight.js";

/**
 * Sends a request, and shows its response in an element.
 *
 * @param label name of the operation, for screen readers.
 * @param request returns the request: URL and options of fetch.
 * @param explain returns the documentation of a status and a reason as elements; none for unknown ones.
 */
export async function sendAndShow(output, label, request, explain) {
  output.replaceChildren("…");
  const startMs = performance.now();
  try {
    const { url, ...options } = await request();
    const response = await fetch(url, { ...options, signal: AbortSignal.timeout(30_000), credentials: "omit" });
    const text = await response.text();
    const took = `${Math.round(performance.now() - startMs)} ms, ${text.length} characters`;
    const reason = reasonIn(text);
    const isGood = response.ok && reason === undefined;
    const status = h(
      "p",
      { class: "status" },
      h("strong", { class: isGood ? "good" : "bad" }, `${response.status} ${response.statusText}`.trim()),
      ...(reason === undefined ? [] : [" ", h("code", {}, reason)]),
      " ",
      h("span", { class: "dim" }, `after ${took}`),
    );
    const body = h("pre", { tabindex: 0, role: "region", "aria-label": `Response: ${label}` });
    showCode(body, indentJson(text), "json");
    output.replaceChildren(
      status,
      ...explain(String(response.status), reason),
      headersOf(response, label),
      ...(text === "" ? [] : [body]),
    );
  } catch (error) {
    output.replaceChildren(h("p", { class: "bad" }, `No response (${error.name}): ${error.message}`));
  }
}

function headersOf(response, label) {
  const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`);
  return h(
    "details",
    { class: "headers" },
    h("summary", {}, `${lines.length} response headers`),
    h("pre", { tabindex: 0, role: "region", "aria-label": `Headers: ${label}` }, lines.join("\n")),
  );
}

/** Returns the reason of an error body; undefined for other bodies. JSON-RPC has it in the data of its error. */
function reasonIn(text) {
  try {
    const { success, errorCode, error } = JSON.parse(text);
    const reason = success === false ? errorCode : error?.data?.reason;
    return typeof reason === "string" ? reason : undefined;
  } catch {
    return undefined;
  }
}
