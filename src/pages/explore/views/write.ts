/** Creates a program, or changes one: a form, a preview of what will be signed, and its submission. */
import type { ProgramResponse } from "../responses.js";
import { memberOf } from "../document-tree.js";
import { button, h, setText } from "../dom.js";
import { escapeInvisible } from "../format.js";
import { bodyFacts, operationDetails } from "../operation-text.js";
import { facts, hash, link, messageOf, note, ownerLink, section } from "../parts.js";
import { linkTo } from "../routes.js";
import type { Session } from "../session.js";
import type { ViewContext, View } from "../view.js";
import { createDraft, type Draft, submitDraft } from "../write/draft.js";
import {
  accessForm,
  appendItemForm,
  deleteFieldForm,
  deleteProgramForm,
  newProgramForm,
  type OperationForm,
  replaceForm,
  setFieldForm,
} from "../write/forms.js";
import { insecureText, isSecure, listKeys } from "../write/key-store.js";
import { unlockForm } from "./keys.js";

/** Shows the form for a new program. */
export function viewNewProgram(context: ViewContext): Promise<View> {
  return Promise.resolve({
    title: "New program",
    contents: [
      ...withSigner(context, () => [writer(context, newProgramForm())]),
      h("p", {}, link({ kind: "decode" }, "Decode a transaction"), " that you have as bytes, before it is sent."),
    ],
  });
}

/** Shows the forms for changes of a program. */
export async function viewChange(context: ViewContext, address: string): Promise<View> {
  const { node, signal } = context;
  const text = await node.fetchText(`storage-program/${encodeURIComponent(address)}`, signal);
  const program = JSON.parse(text) as ProgramResponse;
  const { storageAddress, programName, acl, encoding, sizeBytes } = program;
  const document = encoding === "json" && sizeBytes > 0 ? memberOf(text, "data") : undefined;
  const forms: Readonly<Record<string, () => OperationForm>> = {
    "Set a field": () => setFieldForm(storageAddress),
    "Append an item": () => appendItemForm(storageAddress),
    "Delete a field": () => deleteFieldForm(storageAddress),
    "Replace the document": () => replaceForm(storageAddress, document),
    "Change the access rule": () => accessForm(storageAddress, acl),
    "Delete the program": () => deleteProgramForm(storageAddress, programName),
  };
  const place = h("div");
  const choice = h(
    "select",
    { "aria-label": "Change" },
    ...Object.keys(forms).map((name) => h("option", { value: name }, name)),
  );
  const show = (): void => place.replaceChildren(writer(context, forms[choice.value]!()));
  choice.addEventListener("change", show);
  return {
    title: `Change ${escapeInvisible(programName)}`,
    contents: [
      facts({ Program: hash(storageAddress), Owner: ownerLink(program.owner) }),
      ...withSigner(context, () => {
        show();
        return [h("p", {}, choice), place];
      }),
    ],
  };
}

/** Returns the contents if there is a key to sign with, otherwise the way to one. */
function withSigner({ node: { session }, signIn }: ViewContext, contents: () => Node[]): Node[] {
  if (!isSecure()) {
    return [h("p", { class: "bad" }, insecureText)];
  }
  if (session.signer === undefined && session.publicKey !== undefined) {
    return unlockParts(session, session.publicKey, signIn);
  }
  if (session.signer === undefined) {
    return [h("p", {}, "Writing needs a key: ", link({ kind: "keys" }, "create, import or unlock one"), ".")];
  }
  return contents();
}

/** Returns the way from a session for reading to one for writing, with the same key. */
function unlockParts(session: Session, publicKey: string, signIn: () => void): Node[] {
  const readingOnly = "You are signed in for reading only. To write, ";
  const stored = listKeys().find((key) => key.publicKey === publicKey);
  return stored === undefined
    ? [
        h(
          "p",
          {},
          readingOnly,
          "sign in again with ",
          ownerLink(publicKey),
          ", or ",
          link({ kind: "keys" }, "use another key"),
          ".",
        ),
        h("p", {}, button("Sign in with a key", {}, signIn)),
      ]
    : [h("p", {}, readingOnly, "unlock ", ownerLink(publicKey)), unlockForm(session, stored)];
}

/** Returns a form with its preview. */
function writer(context: ViewContext, { element, read }: OperationForm): HTMLElement {
  const { node, signal } = context;
  const { signer } = node.session;
  const problem = h("p", { class: "bad", role: "alert" });
  const preview = h("div");
  const form = h("form", { class: "write" }, element, h("p", {}, h("button", {}, "Preview")), problem);
  const showPreview = async (): Promise<void> => {
    const { operation, code, builder } = read();
    const draft = await createDraft(node, signer!.publicKey, operation);
    const submit = button("Sign and submit", {}, async () => {
      submit.disabled = true;
      try {
        await submitDraft(node, draft, signer!);
        location.hash = linkTo({ kind: "transaction", name: draft.hash });
      } catch (error) {
        submit.disabled = false;
        setText(problem, messageOf(error));
      }
    });
    const heading = h("h2", { tabindex: -1 }, "Preview");
    preview.replaceChildren(
      heading,
      ...previewParts(draft),
      h("p", {}, submit),
      sample(node.urlOf("./"), code, builder),
    );
    heading.focus();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setText(problem, "");
    preview.replaceChildren();
    void showPreview().catch((error: unknown) => signal.aborted || setText(problem, messageOf(error)));
  });
  // A preview of other values would be misleading.
  form.addEventListener("input", () => preview.replaceChildren());
  return h("div", {}, form, preview);
}

function previewParts({ bytes, hash: transactionHash, body }: Draft): Node[] {
  return [
    note(`This was decoded from the ${bytes.length} bytes that your key will sign.`),
    operationDetails(body),
    facts({ Hash: hash(transactionHash), ...bodyFacts(body) }),
  ];
}

/** Returns the program that does the same with the client package. */
function sample(url: string, code: string, builder: string): HTMLElement {
  const names = ["createGatehouse", builder, ...(code.includes("jsonText(") ? ["jsonText"] : []), "keyFromPem"];
  const lines = [
    "// The package is in no registry: pack it in a clone of Gatehouse with npm pack --workspace client.",
    `import { ${names.join(", ")} } from "gatehouse-client";`,
    'import { readFile } from "node:fs/promises";',
    "",
    'const signer = keyFromPem(await readFile("my.key", "utf8"));',
    `const client = createGatehouse(${JSON.stringify(url.replace(/\/$/, ""))}, { signer });`,
    "const { hash, storageAddress } = await client.submit(",
    `  ${code},`,
    ");",
    "const { blockNumber } = await client.waitFor(hash);",
    "console.log(storageAddress, blockNumber);",
    "client.close();",
  ];
  return section("The same with the client package", h("pre", { tabindex: 0 }, lines.join("\n")));
}
