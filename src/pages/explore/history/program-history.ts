/** Shows the changes of a program, and the difference between two of its versions. */
import type { HistoryAnswer, ProgramChange, TransactionAnswer } from "../answers.js";
import { containing, dataTable, type DataTable, oneOf } from "../table/data-table.js";
import { longText } from "../document-tree.js";
import { button, h } from "../dom.js";
import { withQuery } from "../node.js";
import { changeWords } from "../operation-words.js";
import { blockLink, given, messageOf, note, ownerLink, table, timeAgo, transactionLink } from "../parts.js";
import { applyChange, type Difference, differences, isComplete, type Version } from "./program-versions.js";
import { changeQuery, readQuery } from "../table/query.js";
import type { Looking } from "../view.js";
import { counted, cut, visible } from "../words.js";

const kinds = [
  ...["create_program", "write_program", "set_field", "set_item", "append_item", "delete_field", "delete_item"],
  "update_access",
];
/** Maximum numbers of changes that a comparison reads, of choices, and of shown differences. */
const [maxChanges, maxChoices, maxShown] = [1_000, 200, 500];
/** Number of transactions that are requested at a time. */
const atOnce = 6;

function line({ kind, fields }: ProgramChange): string {
  return fields.length === 0 ? changeWords(kind) : `${changeWords(kind)}: ${fields.join(", ")}`;
}

/** @param path of the program's resource. */
export async function programHistory({ node, signal }: Looking, path: string): Promise<HTMLElement> {
  const load: DataTable<ProgramChange>["load"] = async (pageToken, size) => {
    const answer = await node.ask<HistoryAnswer>(
      withQuery(`${path}/history`, { pageToken, pageSize: String(size) }),
      signal,
    );
    return { rows: answer.changes, next: answer.nextPageToken };
  };
  const [list, { rows: choices }] = await Promise.all([
    dataTable<ProgramChange>({
      id: "history",
      label: "History",
      columns: [
        { name: "Block", cell: ({ blockNumber }) => blockLink(blockNumber), csv: ({ blockNumber }) => blockNumber },
        {
          name: "When",
          cell: ({ timestamp }) => timeAgo(timestamp),
          csv: ({ timestamp }) => new Date(timestamp).toISOString(),
        },
        { name: "Change", cell: (change) => given(line(change), 300), csv: line },
        {
          name: "Transaction",
          cell: ({ transactionHash }) => transactionLink(transactionHash),
          csv: ({ transactionHash }) => transactionHash,
        },
        { name: "By", cell: ({ sender }) => ownerLink(sender), csv: ({ sender }) => sender },
      ],
      filters: [
        oneOf("kind", "Kind", kinds, ({ kind }) => kind),
        containing("field", "Field contains", ({ fields }) => fields.join("\n")),
      ],
      empty: "Nothing of it is stored.",
      load,
    }),
    load(undefined, maxChoices),
  ]);
  return h("div", {}, list, comparison(choices));

  /** Returns the form that chooses two versions. The address has the choice. */
  function comparison(choices: readonly ProgramChange[]): HTMLElement {
    if (choices.length === 0) {
      return h("div");
    }
    const query = readQuery();
    const result = h("div", { role: "status" });
    const chooser = (label: string): HTMLSelectElement =>
      h(
        "select",
        { "aria-label": label },
        ...choices.map((change) =>
          h(
            "option",
            { value: change.transactionHash },
            `Block ${change.blockNumber}: ${cut(visible(line(change)), 60)}`,
          ),
        ),
      );
    const [from, to] = [chooser("From"), chooser("To")];
    to.value = query.get("to") ?? choices[0]!.transactionHash;
    const before = choices[choices.findIndex(({ transactionHash }) => transactionHash === to.value) + 1];
    from.prepend(h("option", { value: "" }, "Before it existed"));
    from.value = query.get("from") ?? before?.transactionHash ?? "";

    const compare = button("Compare", {}, async () => {
      compare.disabled = true;
      changeQuery({ from: from.value, to: to.value });
      result.replaceChildren("Reading the transactions…");
      try {
        result.replaceChildren(...(await compareVersions(from.value, to.value)));
      } catch (error) {
        result.replaceChildren(h("p", { class: "bad" }, messageOf(error)));
      }
      compare.disabled = false;
    });
    if (query.has("to")) {
      compare.click();
    }
    return h(
      "div",
      {},
      h("h3", {}, "Difference between two versions"),
      h(
        "div",
        { class: "filters", role: "group", "aria-label": "Versions" },
        h("label", {}, "From ", from),
        h("label", {}, "To ", to),
        compare,
      ),
      result,
    );
  }

  async function compareVersions(from: string, to: string): Promise<HTMLElement[]> {
    const { versions, count } = await readVersions(new Set([from, to].filter((hash) => hash !== "")));
    const none: Version = { data: undefined, access: undefined };
    const [older, newer] = [from, to].map((hash) => (hash === "" ? none : versions.get(hash)));
    if (older === undefined || newer === undefined) {
      throw new Error("The transactions of these versions are not stored here.");
    }
    const rows: { readonly what: string; readonly difference: Difference }[] = [];
    let isCut = false;
    for (const [what, generator] of [
      ["Document", differences(older.data, newer.data)],
      // A rule that is older than the oldest transaction that was read is not known.
      ["Rule", older === none || older.access !== undefined ? differences(older.access, newer.access) : []],
    ] as const) {
      for (const difference of generator) {
        if (rows.length === maxShown) {
          isCut = true;
          break;
        }
        rows.push({ what, difference });
      }
    }
    const basis = note(
      `Worked out in this page from ${counted(count, "transaction")}.${isCut ? ` Only the first ${maxShown} differences are shown.` : ""}`,
    );
    return rows.length === 0 ? [h("p", {}, "No difference."), basis] : [differenceTable(rows), basis];
  }

  /** Reads changes from the latest one back to the last complete one before all wanted versions, and replays them. */
  async function readVersions(wanted: ReadonlySet<string>): Promise<{ versions: Map<string, Version>; count: number }> {
    const changes: ProgramChange[] = [];
    const missing = new Set(wanted);
    let token: string | undefined;
    let isWhole = false;
    do {
      const batch = await load(token, 200);
      for (const change of batch.rows) {
        missing.delete(change.transactionHash);
        changes.push(change);
        if (missing.size === 0 && isComplete(change.kind)) {
          isWhole = true;
          break;
        }
      }
      token = batch.next;
    } while (!isWhole && token !== undefined && changes.length < maxChanges);
    if (!isWhole) {
      throw new Error(
        token === undefined
          ? "The node does not keep the history back to these versions."
          : `More than ${maxChanges} changes lie between these versions and the last complete one: choose later versions.`,
      );
    }
    // Later changes than the wanted ones are not needed.
    const first = changes.findIndex(({ transactionHash }) => wanted.has(transactionHash));
    const needed = changes.slice(first).reverse();
    const versions = new Map<string, Version>();
    let version: Version = { data: undefined, access: undefined };
    for (let i = 0; i < needed.length; i += atOnce) {
      const hashes = needed.slice(i, i + atOnce).map(({ transactionHash }) => transactionHash);
      for (const { hash, body } of await Promise.all(hashes.map(readTransaction))) {
        const [name, value] = Object.entries(body?.storage ?? {})[0] ?? [];
        if (name === undefined || value === undefined) {
          throw new Error("A transaction of the history is not shown to you.");
        }
        version = applyChange(version, { name, value });
        if (wanted.has(hash)) {
          versions.set(hash, version);
        }
      }
    }
    return { versions, count: needed.length };
  }

  async function readTransaction(hash: string): Promise<TransactionAnswer> {
    return await node.ask(`chain/transactions/${hash}?withBody=true`, signal);
  }
}

function differenceTable(rows: readonly { readonly what: string; readonly difference: Difference }[]): HTMLElement {
  return table(
    "Differences",
    ["Where", "Change", "Before", "After"],
    rows.map(({ what, difference: { path, before, after } }) => [
      given(path === "" ? what : what === "Document" ? path : `${what}: ${path}`, 200),
      before === undefined ? "added" : after === undefined ? "removed" : "changed",
      before === undefined ? undefined : h("del", { class: "removed" }, longText(before)),
      after === undefined ? undefined : h("ins", { class: "added" }, longText(after)),
    ]),
  ).element;
}
