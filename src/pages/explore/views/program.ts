/** Shows a storage program: data, access, history, proof. */
import { eachField } from "../../../storage/documents/document-parts.js";
import { typeOfJson } from "../../../storage/documents/json-text.js";
import { accessParts } from "../access.js";
import type { ProgramAnswer } from "../answers.js";
import { documentTree, longText, type Part, partsOf } from "../document-tree.js";
import { button, type Content, h, say } from "../dom.js";
import { NodeError } from "../node.js";
import { code, facts, hash, note, orWhyNot, ownerLink, section, timeAgo, wholeLink } from "../parts.js";
import { programHistory } from "../history/program-history.js";
import type { Proofs } from "../proofs.js";
import { changeQuery, readQuery } from "../table/query.js";
import { trustForm } from "../trust-form.js";
import { createVerifier } from "../verify-button.js";
import type { Looking, View } from "../view.js";
import { counted, cut, sizeOf, visible } from "../words.js";

export async function viewProgram(looking: Looking, address: string): Promise<View> {
  const { node, proofs, signal } = looking;
  const path = `storage-program/${encodeURIComponent(address)}`;
  try {
    const text = await node.askText(path, signal);
    const program = JSON.parse(text) as ProgramAnswer;
    // As it was written: a number keeps all of its digits.
    const [data, metadata] = ["data", "metadata"].map(
      (wanted) => [...eachField(text)].find(({ name }) => name === wanted)!.value,
    ) as [string, string];
    return {
      title: visible(program.programName),
      contents: [
        note("Storage program"),
        facts({
          Address: hash(program.storageAddress),
          Owner: wholeLink(ownerLink(program.owner), program.owner),
          Holds:
            program.sizeBytes === 0
              ? "nothing"
              : `${program.encoding === "json" ? "a document" : "bytes"} of ${sizeOf(program.sizeBytes)}`,
          Made: timeAgo(Date.parse(program.createdAt)),
          Changed: timeAgo(Date.parse(program.updatedAt)),
        }),
        section("Document", ...documentParts(proofs, program, data)),
        ...(metadata === "null" ? [] : [section("Metadata", documentTree(metadata))]),
        section("Who may read", accessParts(program.acl)),
        section("History", await orWhyNot(programHistory(looking, path), signal)),
        section("Proof", ...proofParts(looking, program, data)),
      ],
    };
  } catch (error) {
    if (error instanceof NodeError && error.reason === "NOT_FOUND") {
      return { title: "No program to show", contents: privateParts(looking, address) };
    }
    throw error;
  }
}

function privateParts({ node, signIn }: Looking, address: string): HTMLElement[] {
  const who =
    node.session.publicKey === undefined
      ? "There is no public program at this address. If it is private, sign in with a key that its rule allows."
      : "There is no program at this address that your key may read. Sign in with another key.";
  return [facts({ Address: hash(address) }), h("p", {}, who), h("p", {}, button("Sign in with a key", {}, signIn))];
}

/** Returns the fields, each with a button that verifies it; for other documents the whole. */
function documentParts(
  proofs: Proofs,
  { storageAddress, encoding, sizeBytes }: ProgramAnswer,
  data: string,
): Content[] {
  if (sizeBytes === 0) {
    return [note("It holds nothing.")];
  }
  if (encoding !== "json") {
    return [note("Bytes, as base64:"), h("div", { class: "raw" }, longText(JSON.parse(data) as string))];
  }
  if (typeOfJson(data) !== "object") {
    return [documentTree(data)];
  }
  return [fieldList(proofs, storageAddress, partsOf(data)), asWritten(data)];
}

/** Number of fields shown at first, and added with each press for more. */
const fieldsShown = 100;

/** Returns the fields, each with a button that verifies it. The address has the filter by name. */
function fieldList(proofs: Proofs, storageAddress: string, fields: readonly Part[]): HTMLElement {
  if (fields.length === 0) {
    return note("It has no fields.");
  }
  const list = h("ul", { class: "fields", "aria-label": "Fields" });
  const said = h("p", { class: "dim", role: "status" });
  const more = h("p");
  const itemOf = ({ name, text }: Part): HTMLElement => {
    const shown = name === "" ? '""' : cut(visible(name), 256);
    const { button, result } = createVerifier(proofs, {
      label: "Verify",
      name: `Verify ${shown}`,
      question: { storageAddress, fields: [name] },
      conclude: ({ state }) => concludeField(name, text, state.program),
    });
    return h(
      "li",
      {},
      h(
        "div",
        { class: "field" },
        h("div", {}, h("span", { class: "name" }, shown), ": ", documentTree(text)),
        h("span", { class: "kind dim" }, typeOfJson(text)),
        button,
      ),
      result,
    );
  };
  const add = (found: readonly Part[], from: number): void => {
    const end = from + fieldsShown;
    list.append(...found.slice(from, end).map(itemOf));
    const left = found.length - end;
    more.replaceChildren(
      ...(left > 0 ? [button(`Show ${Math.min(left, fieldsShown)} of ${left} more`, {}, () => add(found, end))] : []),
    );
  };
  const show = (wanted: string): void => {
    const found = wanted === "" ? fields : fields.filter(({ name }) => name.toLowerCase().includes(wanted));
    list.replaceChildren();
    list.hidden = found.length === 0;
    add(found, 0);
    say(said, wanted === "" ? "" : `${found.length} of ${counted(fields.length, "field")}.`);
  };
  const filter = h("input", { type: "search", spellcheck: "false" });
  filter.value = readQuery().get("fields.name") ?? "";
  filter.addEventListener("input", () => {
    changeQuery({ "fields.name": filter.value.trim() });
    show(filter.value.trim().toLowerCase());
  });
  show(filter.value.trim().toLowerCase());
  const form = h("div", { class: "filters" }, h("label", {}, "Name contains ", filter));
  return h(
    "div",
    { class: "data" },
    ...(fields.length > 10 ? [h("div", { class: "tools" }, form)] : []),
    list,
    said,
    more,
  );
}

/** Returns the text as it was written. It is created when it is opened, since it may be large. */
function asWritten(data: string): HTMLElement {
  const made = h("details", {}, h("summary", {}, "As it was written"));
  made.addEventListener("toggle", () => {
    if (made.childElementCount === 1) {
      made.append(h("div", { class: "raw" }, longText(data)));
    }
  });
  return made;
}

type ProvedProgram = Awaited<ReturnType<Proofs["verify"]>>["state"]["program"];

function concludeField(name: string, shown: string, program: ProvedProgram): Content[] {
  const value = program?.kind === "present" ? program.fields.get(name) : undefined;
  if (value === undefined) {
    throw new Error("The proof shows that the field was deleted. Reload the page.");
  }
  if (value !== shown) {
    throw new Error("The proof shows another value: the field has changed. Reload the page.");
  }
  return [`The field is `, code(cut(value, 200)), "."];
}

function proofParts(
  { proofs, node }: Looking,
  { storageAddress, owner, programName }: ProgramAnswer,
  data: string,
): Content[] {
  const { button, result } = createVerifier(proofs, {
    label: "Verify all of it",
    name: "Verify all of it",
    question: { storageAddress, withDocument: true, withMetadata: true },
    conclude: ({ state }) => {
      const { program } = state;
      const isShown =
        program?.kind === "present" && (program.data ?? "null") === data && program.record.owner === owner;
      if (!isShown || program.record.programName !== programName) {
        throw new Error("The proof shows another program: it has changed. Reload the page.");
      }
      return ["Name, owner, rule and document are those of a signed block."];
    },
  });
  return [
    h(
      "p",
      {},
      "The header of each block commits to the whole state after it. This page asks for the path from the program to a header that an authority of the network signed, and computes it itself.",
    ),
    h("p", {}, button),
    result,
    trustForm(proofs, node),
  ];
}
