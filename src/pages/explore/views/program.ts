/** Shows a storage program: its document, access rule, history and proof. */
import type { ProvedState } from "../../../../client/src/proof/check.js";
import { typeOfJson } from "../../../storage/documents/json-text.js";
import { accessBadge, accessParts } from "../access.js";
import type { ProgramResponse } from "../responses.js";
import { documentTree, longText, memberOf, type Part, partsOf } from "../document-tree.js";
import { button, type Content, h, setText } from "../dom.js";
import { NodeError } from "../node.js";
import { watchBlocks } from "../live.js";
import { code, facts, fullOwnerLink, hash, note, orError, section, signInHint, tag, timeAndAge } from "../parts.js";
import { linkTo } from "../routes.js";
import { programHistory } from "../history/program-history.js";
import type { Proofs } from "../proof/proofs.js";
import { changeQuery, readQuery } from "../table/query.js";
import { trustForm } from "../proof/trust-form.js";
import { createVerifier } from "../proof/verify-button.js";
import type { View, ViewContext } from "../view.js";
import { counted, escapeInvisible, grouped, sizeOf, truncate } from "../format.js";

const changeText = "Change this program";

export async function viewProgram(context: ViewContext, address: string): Promise<View> {
  const { node, proofs, signal } = context;
  const path = `storage-program/${encodeURIComponent(address)}`;
  try {
    const text = await node.fetchText(path, signal);
    const program = JSON.parse(text) as ProgramResponse;
    const [data, metadata] = [memberOf(text, "data"), memberOf(text, "metadata")];
    return {
      title: escapeInvisible(program.programName),
      contents: [
        h("p", { class: "lead" }, tag("Storage program"), " ", accessBadge(program.acl)),
        facts({
          Address: hash(program.storageAddress),
          Owner: fullOwnerLink(program.owner),
          Content:
            program.sizeBytes === 0
              ? "none"
              : `${program.encoding === "json" ? "a document" : "bytes"} of ${sizeOf(program.sizeBytes)}`,
          Created: timeAndAge(Date.parse(program.createdAt)),
          Changed: timeAndAge(Date.parse(program.updatedAt)),
        }),
        ...(node.session.publicKey === program.owner
          ? [
              h(
                "p",
                { class: "buttons" },
                h("a", { class: "press", href: linkTo({ kind: "change", name: program.storageAddress }) }, changeText),
              ),
            ]
          : []),
        section("Document", ...documentContents(proofs, program, data)),
        ...(metadata === "null" ? [] : [section("Metadata", documentTree(metadata))]),
        section("Read access", accessParts(program.acl)),
        section("History", await orError(programHistory(context, path), signal)),
        section("Proof", ...proofContents(context, program, data)),
      ],
    };
  } catch (error) {
    if (error instanceof NodeError && error.reason === "NOT_FOUND") {
      reloadOnceItExists(context, path);
      return { title: "No program to show", contents: notFoundContents(context, address) };
    }
    throw error;
  }
}

/** Loads the view again once a new block has the program. */
function reloadOnceItExists({ node, signal, reload }: ViewContext, path: string): void {
  let first: number | undefined;
  watchBlocks(node, signal, {
    onBlock(number) {
      first ??= number;
      if (number > first) {
        node.fetchText(path, signal).then(reload, () => undefined);
      }
    },
    onError: () => undefined,
  });
}

/** A node does not reveal whether a program exists that the reader may not read, so the page cannot either. */
function notFoundContents({ node, signIn }: ViewContext, address: string): HTMLElement[] {
  const isSignedIn = node.session.publicKey !== undefined;
  return [
    facts({ Address: hash(address) }),
    h("p", {}, `For ${isSignedIn ? "this key" : "readers without a key"}, the node has no program at this address:`),
    h(
      "ul",
      {},
      h("li", {}, "it does not exist, or was deleted;"),
      h("li", {}, "or the transaction that creates it waits for a block: this page shows the program once it exists;"),
      h("li", {}, "or it is private, and its rule does not allow the reader."),
    ),
    ...(isSignedIn ? [] : [signInHint(node.session, signIn)]),
  ];
}

/** Returns the fields of an object, each with a button that verifies it, or a document of another type as one tree. */
function documentContents(
  proofs: Proofs,
  { storageAddress, encoding, sizeBytes }: ProgramResponse,
  data: string,
): Content[] {
  if (sizeBytes === 0) {
    return [note("The program is empty.")];
  }
  if (encoding !== "json") {
    return [note("Binary data in base64:"), h("div", { class: "raw" }, longText(JSON.parse(data) as string))];
  }
  if (typeOfJson(data) !== "object") {
    return [documentTree(data)];
  }
  return [fieldList(proofs, storageAddress, partsOf(data)), originalText(data)];
}

/** Number of fields that are shown at first, and that each press of the button adds. */
const pageSize = 100;

/** Returns the fields, each with a button that verifies it. The URL has the filter by name. */
function fieldList(proofs: Proofs, storageAddress: string, fields: readonly Part[]): HTMLElement {
  if (fields.length === 0) {
    return note("The document has no fields.");
  }
  const list = h("ul", { class: "fields", "aria-label": "Fields" });
  const status = h("p", { class: "dim", role: "status" });
  const more = h("p");
  const itemOf = ({ name, text }: Part): HTMLElement => {
    const shown = name === "" ? '""' : truncate(escapeInvisible(name), 256);
    const { button, result } = createVerifier(proofs, {
      label: "Verify",
      name: `Verify ${shown}`,
      question: { storageAddress, fields: [name] },
      conclude: ({ program }) => concludeField(name, text, program),
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
  const add = (matching: readonly Part[], from: number): void => {
    const end = from + pageSize;
    list.append(...matching.slice(from, end).map(itemOf));
    const remaining = matching.length - end;
    more.replaceChildren(
      ...(remaining > 0
        ? [button(`Show ${Math.min(remaining, pageSize)} of ${grouped(remaining)} more`, {}, () => add(matching, end))]
        : []),
    );
  };
  const show = (text: string): void => {
    const matching = text === "" ? fields : fields.filter(({ name }) => name.toLowerCase().includes(text));
    list.replaceChildren();
    list.hidden = matching.length === 0;
    add(matching, 0);
    setText(status, text === "" ? "" : `${grouped(matching.length)} of ${counted(fields.length, "field")}.`);
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
    status,
    more,
  );
}

/** Returns the JSON text of the document. It is created when the reader opens it, since it may be large. */
function originalText(data: string): HTMLElement {
  const details = h("details", {}, h("summary", {}, "Original text"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) {
      details.append(h("div", { class: "raw" }, longText(data)));
    }
  });
  return details;
}

/** Compares a proved field with the shown one. Throws if they differ. */
function concludeField(name: string, shown: string, program: ProvedState["program"]): Content[] {
  const value = program?.kind === "present" ? program.fields.get(name) : undefined;
  if (value === undefined) {
    throw new Error("The proof shows that the field was deleted. Reload the page.");
  }
  if (value !== shown) {
    throw new Error("The proof shows another value: the field has changed. Reload the page.");
  }
  return [`The field is `, code(truncate(value, 200)), "."];
}

function proofContents(
  { proofs, node }: ViewContext,
  { storageAddress, owner, programName }: ProgramResponse,
  data: string,
): Content[] {
  const { button, result } = createVerifier(proofs, {
    label: "Verify the program",
    question: { storageAddress, withDocument: true, withMetadata: true },
    conclude: ({ program }) => {
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
      "The header of each block commits to the complete state after the block. This page requests the path from the program to a header that an authority of the network signed, and verifies the path itself.",
    ),
    h("p", {}, button),
    result,
    trustForm(proofs, node),
  ];
}
