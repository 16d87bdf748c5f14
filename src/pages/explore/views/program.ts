/** Shows a storage program: data, access, history, proof. */
import { eachField } from "../../../storage/documents/document-parts.js";
import { typeOfJson } from "../../../storage/documents/json-text.js";
import { accessParts } from "../access.js";
import type { HistoryAnswer, ProgramAnswer } from "../answers.js";
import { documentTree, partsOf } from "../document-tree.js";
import { button, type Content, h } from "../dom.js";
import { NodeError, withQuery } from "../node.js";
import { changeWords } from "../operation-words.js";
import {
  blockLink,
  code,
  facts,
  note,
  orWhyNot,
  ownerLink,
  type Page,
  pagedTable,
  section,
  timeAgo,
  transactionLink,
  wholeLink,
} from "../parts.js";
import type { Proofs } from "../proofs.js";
import { trustForm } from "../trust-form.js";
import { createVerifier } from "../verify-button.js";
import type { Looking, View } from "../view.js";
import { sizeOf } from "../words.js";

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
      title: program.programName,
      contents: [
        note("Storage program"),
        facts({
          Address: code(program.storageAddress),
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
        section("History", await orWhyNot(history(looking, path), signal)),
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
  return [facts({ Address: code(address) }), h("p", {}, who), h("p", {}, button("Sign in with a key", {}, signIn))];
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
    return [note("Bytes, as base64:"), h("pre", {}, (JSON.parse(data) as string).replace(/.{76}/g, "$&\n"))];
  }
  if (typeOfJson(data) !== "object") {
    return [documentTree(data)];
  }
  const fields = partsOf(data);
  const items = fields.map(({ name, text }) => {
    const shown = name === "" ? '""' : name;
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
  });
  return [
    fields.length === 0 ? note("It has no fields.") : h("ul", { class: "fields", "aria-label": "Fields" }, ...items),
    asWritten(data),
  ];
}

function asWritten(data: string): HTMLElement {
  return h("details", {}, h("summary", {}, "As it was written"), h("pre", { tabindex: 0 }, data));
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
  return [`The field is `, code(value.length > 200 ? `${value.slice(0, 200)}…` : value), "."];
}

async function history({ node, signal }: Looking, path: string): Promise<HTMLElement> {
  const pageOf = async (pageToken?: string): Promise<Page> => {
    const query = { pageToken };
    const answer = await node.ask<HistoryAnswer>(withQuery(`${path}/history`, query), signal);
    return {
      rows: answer.changes.map(({ blockNumber, timestamp, transactionHash, sender, kind, fields }) => [
        blockLink(blockNumber),
        timeAgo(timestamp),
        fields.length === 0 ? changeWords(kind) : `${changeWords(kind)}: ${fields.join(", ")}`,
        transactionLink(transactionHash),
        ownerLink(sender),
      ]),
      next: answer.nextPageToken === undefined ? undefined : () => pageOf(answer.nextPageToken),
    };
  };
  return pagedTable(
    "History",
    ["Block", "When", "Change", "Transaction", "By"],
    await pageOf(),
    "Nothing of it is stored.",
  );
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
