"use strict";
/** Searches the operations, opens the one that the address names, and tries them. */
const at = (id) => document.getElementById(id);

/** What can be found of each operation: all of its words. */
const areas = [...document.querySelectorAll(".area")].map((area) => ({
  area,
  operations: [...area.querySelectorAll(".operation")].map((operation) => ({
    operation,
    text: operation.textContent.toLowerCase().replace(/\s+/g, " "),
  })),
}));

/** Shows those that have all words of what was typed. */
function search() {
  const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
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
  at("caller").hidden = words.length > 0;
  at("found").textContent = words.length === 0 ? `${count} operations` : `${found} of ${count} operations`;
}

/** A link may name an operation that is closed, or was not found. */
function openNamed() {
  const named = at(decodeURIComponent(location.hash.slice(1)));
  if (named?.closest(".area")?.hidden || named?.hidden) {
    at("search").value = "";
    search();
  }
  if (named?.tagName === "DETAILS") named.open = true;
  named?.scrollIntoView();
}

/** The address, the options of fetch, or the sentence that says what is missing. */
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
  // Where the page is may be below a path that only its reader's browser knows.
  return [
    `.${url}${query.size === 0 ? "" : `?${query}`}`,
    { method, headers, body, signal: AbortSignal.timeout(30_000) },
  ];
}

/** JSON is laid out, unless that could change it: numbers beyond what JavaScript has stay as they were sent. */
function layOut(text) {
  try {
    const value = JSON.parse(text);
    return /\d{16}/.test(text) ? text : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}

async function attempt(form) {
  const answer = form.querySelector(".answer");
  answer.textContent = "…";
  const begunMs = performance.now();
  let said;
  let text = "";
  try {
    const [url, options] = requestOf(form);
    const response = await fetch(url, options);
    text = layOut(await response.text());
    said = `${response.status} ${response.statusText} after ${Math.round(performance.now() - begunMs)} ms`;
  } catch (error) {
    said = `No response (${error.name}): ${error.message}`;
  }
  const line = document.createElement("p");
  line.textContent = said;
  const body = document.createElement("pre");
  body.textContent = text;
  body.tabIndex = 0;
  body.setAttribute("role", "region");
  body.setAttribute("aria-label", `Response: ${form.getAttribute("aria-label")}`);
  answer.replaceChildren(line, ...(text === "" ? [] : [body]));
}

at("search").addEventListener("input", search);
addEventListener("hashchange", openNamed);
for (const form of document.querySelectorAll("form"))
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form);
  });
search();
openNamed();
