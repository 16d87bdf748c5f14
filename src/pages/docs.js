"use strict";
/**
 * Script of /docs: searches the operations, opens the operation that the URL names, and sends requests from the forms.
 */
const byId = (id) => document.getElementById(id);

/** Areas of the API with their operations, and the text of each operation in lower case for the search. */
const areas = [...document.querySelectorAll(".area")].map((area) => ({
  area,
  operations: [...area.querySelectorAll(".operation")].map((operation) => ({
    operation,
    text: operation.textContent.toLowerCase().replace(/\s+/g, " "),
  })),
}));

/** Shows only the operations that contain all words of the search box. */
function search() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  let count = 0;
  for (const { area, operations } of areas) {
    for (const { operation, text } of operations) {
      operation.hidden = !words.every((word) => text.includes(word));
      found += operation.hidden ? 0 : 1;
      count++;
    }
    area.hidden = operations.every(({ operation }) => operation.hidden);
  }
  byId("caller").hidden = words.length > 0;
  byId("found").textContent = words.length === 0 ? `${count} operations` : `${found} of ${count} operations`;
}

/** Opens the element that the fragment of the URL names. Clears the search if the search hides the element. */
function openTarget() {
  const target = byId(decodeURIComponent(location.hash.slice(1)));
  if (target?.closest(".area")?.hidden || target?.hidden) {
    byId("search").value = "";
    search();
  }
  if (target?.tagName === "DETAILS") target.open = true;
  target?.scrollIntoView();
}

/** Returns the URL and the options of fetch for the values in a form. */
function requestOf(form) {
  const { method, path } = form.dataset;
  const query = new URLSearchParams();
  const headers = {};
  let url = path;
  let body;
  for (const { name, value, dataset } of form.querySelectorAll("[name]")) {
    if (dataset.in === "path") url = url.replace(`{${name}}`, encodeURIComponent(value));
    else if (dataset.in === "body") [body, headers["Content-Type"]] = [value, "application/json"];
    else if (value !== "") query.append(name, value);
  }
  for (const { name, value } of document.querySelectorAll("#caller input"))
    if (value !== "") headers[name] = value.trim();
  // The URL is relative, since a proxy may serve the page under a path that the node does not know.
  return [
    `.${url}${query.size === 0 ? "" : `?${query}`}`,
    { method, headers, body, signal: AbortSignal.timeout(30_000) },
  ];
}

/** Indents JSON. Leaves texts with long numbers unchanged, since JavaScript would lose digits of them. */
function indent(text) {
  try {
    const value = JSON.parse(text);
    return /\d{16}/.test(text) ? text : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}

/** Sends the request of a form and shows the response. */
async function send(form) {
  const output = form.querySelector(".answer");
  output.textContent = "…";
  const startMs = performance.now();
  let statusText;
  let text = "";
  try {
    const [url, options] = requestOf(form);
    const response = await fetch(url, options);
    text = indent(await response.text());
    statusText = `${response.status} ${response.statusText} after ${Math.round(performance.now() - startMs)} ms`;
  } catch (error) {
    statusText = `No response (${error.name}): ${error.message}`;
  }
  const line = document.createElement("p");
  line.textContent = statusText;
  const body = document.createElement("pre");
  body.textContent = text;
  body.tabIndex = 0;
  body.setAttribute("role", "region");
  body.setAttribute("aria-label", `Response: ${form.getAttribute("aria-label")}`);
  output.replaceChildren(line, ...(text === "" ? [] : [body]));
}

byId("search").addEventListener("input", search);
addEventListener("hashchange", openTarget);
for (const form of document.querySelectorAll("form"))
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
search();
openTarget();
