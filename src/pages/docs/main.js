/**
 * Script of /docs: searches the operations, fills the forms with examples of the node, shows each request as code, sends
 * it, and shows the response.
 */
import { copyText } from "../explore/copy.ts";
import { button, byId, h, setText } from "../explore/dom.ts";
import { createHttp } from "../explore/http.ts";
import { node } from "../explore/shell/shell-page.ts";
import { findExamples, kindOf } from "./examples.js";
import { colorPage, showCode } from "./highlight.js";
import { readLine } from "./identity-line.js";
import { createGrpcCall, createRequest } from "./request.js";
import { sendAndShow } from "./response.js";
import { languages, samples } from "./samples.js";

const forms = [...document.querySelectorAll("main form")];
const contents = byId("contents");
const { session } = node;

/** Areas of the API with their operations, and the text of each operation in lower case for the search. */
const areas = [...document.querySelectorAll(".area")].map((area, i) => ({
  area,
  links: document.querySelectorAll(".area-links")[i],
  operations: [...area.querySelectorAll(".operation")].map((operation) => ({
    operation,
    link: linkTo(operation.id),
    text: operation.textContent.toLowerCase().replace(/\s+/g, " "),
  })),
}));

/** Returns the link of the list to an operation. */
function linkTo(id) {
  return [...contents.querySelectorAll("a")].find(({ hash }) => hash === `#${id}`);
}

/** Shows only the operations that contain all words of the search box. */
function search() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { area, links, operations } of areas) {
    for (const { operation, link, text } of operations) {
      operation.hidden = !words.every((word) => text.includes(word));
      link.parentElement.hidden = operation.hidden;
      found += operation.hidden ? 0 : 1;
    }
    area.hidden = links.hidden = operations.every(({ operation }) => operation.hidden);
  }
  byId("caller").hidden = words.length > 0;
  setText(byId("found"), words.length === 0 ? `${forms.length} operations` : `${found} of ${forms.length} operations`);
}

/** Shows the element that the fragment of the URL names. Clears the search if the search hides the element. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.closest("[hidden]")) {
    byId("search").value = "";
    search();
  }
  if (narrow.matches && target !== null) {
    contents.open = false;
  }
  target?.scrollIntoView();
}

/** Keeps the height of a header that stays in place, so that the content starts below it. */
function measureHeader() {
  const header = document.querySelector("header.shell");
  const stays = /sticky|fixed/.test(getComputedStyle(header).position);
  document.documentElement.style.setProperty("--header", `${stays ? header.offsetHeight : 0}px`);
}

/** Marks the link to the operation that is in view. */
function followScroll() {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        linkTo(target.id).toggleAttribute("data-seen", isIntersecting);
      }
      const [current] = contents.querySelectorAll("[data-seen]");
      for (const link of contents.querySelectorAll("[aria-current]")) {
        link.removeAttribute("aria-current");
      }
      if (current !== undefined) {
        current.setAttribute("aria-current", "location");
        if (!narrow.matches) {
          // Scrolls the list only; scrollIntoView would scroll the page, too.
          const side = contents.parentElement;
          const top = current.offsetTop;
          if (top < side.scrollTop || top > side.scrollTop + side.clientHeight - 60) {
            side.scrollTop = top - side.clientHeight / 2;
          }
        }
      }
    },
    { rootMargin: "-20% 0px -60%" },
  );
  areas.forEach(({ operations }) => operations.forEach(({ operation }) => observer.observe(operation)));
}

/** Identity of the reader: of the line if there is one, otherwise of the session. */
let caller = {};

async function readCaller() {
  const line = byId("line").value;
  const { headers, expiresMs, error } = readLine(line);
  setText(byId("line-is"), error ?? "");
  byId("line-is").className = error === undefined ? "dim" : "bad";
  byId("line").setAttribute("aria-invalid", String(error !== undefined));
  caller = headers ?? (line.trim() === "" ? await session.headers().catch(() => ({})) : {});
  const key = caller.identity?.replace(/^ed25519:/, "");
  const text =
    key === undefined
      ? "Requests of this page are anonymous."
      : headers === undefined
        ? `Requests are signed by the key with which you signed in: ${key}`
        : Date.now() > expiresMs
          ? `The line of ${key} expired at ${new Date(expiresMs).toLocaleTimeString()}. Run the command again.`
          : `Requests are signed by the line of ${key}, until ${new Date(expiresMs).toLocaleTimeString()}.`;
  const signOut = button("Sign out", {}, () => session.signOut());
  byId("who-calls").replaceChildren(text, ...(key !== undefined && headers === undefined ? [" ", signOut] : []));
  showSamples();
}

/** Returns the request for the values in a form: method, absolute URL, headers and body text, also for gRPC. */
function requestOf(form) {
  const values = [...form.querySelectorAll("[name]")].map(({ name, value, dataset }) => ({
    ...{ name, value, in: dataset.in, type: dataset.type },
  }));
  // Relative to the page, since a proxy may serve it under a path that the node does not know. Not resolved by URL, which
  // would encode the braces of parameters without a value.
  const base = new URL(".", location.href).href.replace(/\/$/, "");
  return {
    ...createRequest(form.dataset, base, values, form.dataset.identity === undefined ? {} : caller),
    isStream: form.dataset.stream !== undefined,
    grpc: createGrpcCall(form.dataset.grpc, base, values),
  };
}

/** Language of all samples: the one that the reader chose last. */
let language = "curl";

/** Adds the code sample of a form. */
function addSample(form) {
  const label = `${form.dataset.method} ${form.dataset.path}`;
  const select = h(
    "select",
    { "aria-label": `Language: ${label}` },
    ...Object.keys(samples).map((name) => h("option", {}, name)),
  );
  const code = h("pre", { tabindex: 0, role: "region", "aria-label": `Code: ${label}` });
  const copy = button("Copy", { "aria-label": `Copy code: ${label}` }, () => copyCode(copy, code));
  select.addEventListener("input", () => {
    language = select.value;
    showSamples();
  });
  const place = form.querySelector(".sample");
  place.append(h("div", { class: "bar" }, h("span", { class: "caption" }, "Request"), select, copy), code);
  place.hidden = false;
}

/** Writes the request of a form as code. */
function showSample(form) {
  form.querySelector(".sample select").value = language;
  showCode(form.querySelector(".sample pre"), samples[language](requestOf(form)), languages[language] ?? language);
}

const showSamples = () => forms.forEach(showSample);

/** Copies code, and shows on the button whether the browser allowed it. */
async function copyCode(press, code) {
  press.textContent = (await copyText(code.textContent)) ? "Copied" : "Not allowed";
  setTimeout(() => (press.textContent = "Copy"), 2_000);
}

/** Returns the documentation of a status and a reason in the list of errors of an operation. */
function explainBy(form) {
  return (status, reason) => {
    const term = [...form.querySelectorAll(".errors dt")].find((each) => each.textContent === status);
    const entries = [...(term?.nextElementSibling.querySelectorAll(":scope > p") ?? [])];
    const entry = entries.find((each) => each.querySelector("code")?.textContent === reason);
    return reason === undefined || entry === undefined ? [] : [h("p", { class: "dim" }, ...clone(entry))];
  };
}

const clone = (element) => [...element.cloneNode(true).childNodes];

/** Fills the forms with values that exist on this node, or with the documented ones. */
async function fillForms() {
  const fields = forms.flatMap((form) =>
    [...form.querySelectorAll("input[data-in]")].map((input) => ({ form, input })),
  );
  // The examples are read without an identity, so that the samples work for everyone.
  const examples = await findExamples(createHttp(location).fetchJson).catch((error) => ({ error }));
  for (const { form, input } of fields) {
    const kind = kindOf(form.dataset.rpc, input.name);
    const found = kind && examples[kind];
    const value = found === undefined ? input.dataset.example : String(found);
    const origin = input.parentElement.querySelector(".origin");
    if (value === undefined) {
      origin.remove();
      continue;
    }
    const note =
      found !== undefined
        ? "on this node"
        : kind === undefined
          ? "documented"
          : examples.error === undefined
            ? "documented; this node has none yet"
            : `documented; asked for one, the node said: ${examples.error.message}`;
    const use = button("Use", { class: "use", "aria-label": `Use ${value}` }, () => {
      input.value = value;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
    // A reader may have typed while the node was asked.
    if (input.required && input.value === "") {
      input.value = value;
      origin.replaceChildren(`This example is ${note}`.replace(/[^.]$/, "$&."));
    } else {
      origin.replaceChildren("Example: ", h("code", {}, value), ` (${note}) `, use);
    }
  }
  showSamples();
}

const narrow = matchMedia("(max-width: 60rem)");
const fold = () => (contents.open = !narrow.matches);
narrow.addEventListener("change", fold);
fold();
measureHeader();
new ResizeObserver(measureHeader).observe(document.querySelector("header.shell"));
byId("search").addEventListener("input", search);
contents.addEventListener("click", ({ target }) => {
  if (narrow.matches && target.closest("a") !== null) {
    contents.open = false;
  }
});
addEventListener("hashchange", openTarget);
byId("line").addEventListener("input", () => void readCaller());
session.onChange(() => void readCaller());
for (const form of forms) {
  addSample(form);
  form.addEventListener("input", () => showSample(form));
  form.querySelector(".send")?.removeAttribute("hidden");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const label = `${form.dataset.method} ${form.dataset.path}`;
    const request = async () => {
      await readCaller();
      const { url, method, headers, body } = requestOf(form);
      return { url, method, headers, body };
    };
    void sendAndShow(form.querySelector(".response"), label, request, explainBy(form));
  });
}
search();
showSamples();
colorPage();
followScroll();
openTarget();
void readCaller();
let hasMoved = false;
for (const event of ["wheel", "touchmove", "keydown", "pointerdown"]) {
  addEventListener(event, () => (hasMoved = true), { once: true, passive: true });
}
// Examples make the page longer, above the operation that the reader opened, too.
void fillForms().then(() => hasMoved || openTarget());
