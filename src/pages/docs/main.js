/**
 * Script of /docs: searches the operations, opens the operation that the URL names, sends requests from the forms, and
 * shows them as code.
 */
import "../explore/shell/shell-page.ts";
import { copyText } from "../explore/copy.ts";
import { byId } from "../explore/dom.ts";
import { createRequest } from "./request.js";
import { samples } from "./samples.js";

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

/** Returns the request for the values in a form: method, absolute URL, headers and body text. */
function requestOf(form) {
  const values = [...form.querySelectorAll("[name]")].map(({ name, value, dataset }) => ({
    ...{ name, value, in: dataset.in },
  }));
  const callerInputs = [...document.querySelectorAll("#caller input")].filter(({ value }) => value !== "");
  const headers = Object.fromEntries(callerInputs.map(({ name, value }) => [name, value.trim()]));
  // Relative to the page, since a proxy may serve it under a path that the node does not know. Not resolved by URL, which
  // would encode the braces of parameters without a value.
  const base = new URL(".", location.href).href.replace(/\/$/, "");
  return createRequest(form.dataset, base, values, headers);
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
  const output = form.querySelector(".response");
  output.textContent = "…";
  const startMs = performance.now();
  let statusText;
  let text = "";
  try {
    const { url, ...options } = requestOf(form);
    const response = await fetch(url, { ...options, signal: AbortSignal.timeout(30_000) });
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

/** Language of all samples: the one that the reader chose last. */
let language = "curl";

/** Adds the code sample of a form, below its button. */
function addSample(form) {
  const label = form.getAttribute("aria-label");
  const details = byId("sample").content.firstElementChild.cloneNode(true);
  const [select, copy, code] = details.querySelectorAll("select, button, pre");
  select.append(...Object.keys(samples).map((name) => new Option(name)));
  select.setAttribute("aria-label", `Language: ${label}`);
  copy.setAttribute("aria-label", `Copy code: ${label}`);
  code.setAttribute("aria-label", `Code: ${label}`);
  // Before the listener of the document, which writes the samples.
  select.addEventListener("input", () => (language = select.value));
  copy.addEventListener("click", () => void copyCode(copy, code));
  details.addEventListener("toggle", showSamples);
  form.querySelector(".response").before(details);
}

/** Writes the requests of the forms into their open samples. */
function showSamples() {
  for (const details of document.querySelectorAll(".sample[open]")) {
    details.querySelector("select").value = language;
    details.querySelector("pre").textContent = samples[language](requestOf(details.closest("form")));
  }
}

/** Copies code, and shows on the button whether the browser allowed it. */
async function copyCode(button, code) {
  button.textContent = (await copyText(code.textContent)) ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = "Copy"), 2_000);
}

byId("search").addEventListener("input", search);
addEventListener("hashchange", openTarget);
document.addEventListener("input", showSamples);
for (const form of document.querySelectorAll("main form")) {
  addSample(form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
search();
openTarget();
