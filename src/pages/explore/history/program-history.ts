/** Shows the changes of a program, and the differences between two of its versions. */
import type { HistoryResponse, ProgramChange, TransactionResponse } from "../responses.js";
import { column, containing, dataTable, type DataTable, oneOf } from "../table/data-table.js";
import { longText } from "../document-tree.js";
import { button, h } from "../dom.js";
import { withQuery } from "../node.js";
import { describeChange } from "../operation-text.js";
import { messageOf, note, ownerLink, table, transactionLink, untrusted } from "../parts.js";
import { applyChange, type Difference, differences, isComplete, type Version } from "./program-versions.js";
import { changeQuery, readQuery } from "../table/query.js";
import { transactionColumns } from "../table/transaction-rows.js";
import type { ViewContext } from "../view.js";
import { counted, escapeInvisible, truncate } from "../format.js";

const kinds = [
  ...["create_program", "write_program", "set_field", "set_item", "append_item", "delete_field", "delete_item"],
  "update_access",
].map(describeChange);
/** Maximum numbers of changes that a comparison reads, of versions in a list, and of shown differences. */
const [maxChanges, maxChoices, maxDifferences] = [1_000, 200, 500];
/** Values of the filters, for lists without a filter. */
const noFilter: ReadonlyMap<string, string> = new Map();
/** Number of transactions that are requested concurrently. */
const concurrency = 6;

function describe({ kind, fields }: ProgramChange): string {
  return fields.length === 0 ? describeChange(kind) : `${describeChange(kind)}: ${fields.join(", ")}`;
}

/**
 * Returns the table of changes, and the form that compares versions.
 *
 * @param path of the program in the HTTP API.
 */
export async function programHistory({ node, signal }: ViewContext, path: string): Promise<HTMLElement> {
  const load: DataTable<ProgramChange>["load"] = async (pageToken, size) => {
    const response = await node.fetchJson<HistoryResponse>(
      withQuery(`${path}/history`, { pageToken, pageSize: String(size) }),
      signal,
    );
    return { rows: response.changes, next: response.nextPageToken };
  };
  const [list, { rows: choices }] = await Promise.all([
    dataTable<ProgramChange>({
      id: "history",
      label: "History",
      columns: [
        transactionColumns.block,
        transactionColumns.time,
        { name: "Change", cell: (change) => untrusted(describe(change), 300), csv: describe },
        column("Transaction", "transactionHash", transactionLink),
        column("Sender", "sender", ownerLink),
      ],
      filters: [
        oneOf("kind", "Kind", kinds, ({ kind }) => describeChange(kind)),
        containing("field", "Field contains", ({ fields }) => fields.join("\n")),
      ],
      empty: "No change is stored on this node.",
      load,
    }),
    load(undefined, maxChoices, noFilter),
  ]);
  return h("div", {}, list, comparisonForm(choices));

  /** Returns the form that selects two versions. The URL has the selection. */
  function comparisonForm(choices: readonly ProgramChange[]): HTMLElement {
    if (choices.length === 0) {
      return h("div");
    }
    const query = readQuery();
    const result = h("div", { role: "status" });
    const versionSelect = (label: string): HTMLSelectElement =>
      h(
        "select",
        { "aria-label": label },
        ...choices.map((change) =>
          h(
            "option",
            { value: change.transactionHash },
            `Block ${change.blockNumber}: ${truncate(escapeInvisible(describe(change)), 60)}`,
          ),
        ),
      );
    const [from, to] = [versionSelect("From"), versionSelect("To")];
    to.value = query.get("to") ?? choices[0]!.transactionHash;
    const previous = choices[choices.findIndex(({ transactionHash }) => transactionHash === to.value) + 1];
    from.prepend(h("option", { value: "" }, "Before it existed"));
    from.value = query.get("from") ?? previous?.transactionHash ?? "";

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
    const absent: Version = { data: undefined, access: undefined };
    const [older, newer] = [from, to].map((hash) => (hash === "" ? absent : versions.get(hash)));
    if (older === undefined || newer === undefined) {
      throw new Error("The transactions of these versions are not stored here.");
    }
    const rows: { readonly part: string; readonly difference: Difference }[] = [];
    let isTruncated = false;
    for (const [part, generator] of [
      ["Document", differences(older.data, newer.data)],
      // The older rule is unknown if none of the transactions that were read set it.
      ["Rule", older === absent || older.access !== undefined ? differences(older.access, newer.access) : []],
    ] as const) {
      for (const difference of generator) {
        if (rows.length === maxDifferences) {
          isTruncated = true;
          break;
        }
        rows.push({ part, difference });
      }
    }
    const source = note(
      `Computed in this page from ${counted(count, "transaction")}.${isTruncated ? ` Only the first ${maxDifferences} differences are shown.` : ""}`,
    );
    return rows.length === 0 ? [h("p", {}, "No difference."), source] : [differenceTable(rows), source];
  }

  /**
   * Rebuilds versions, each named by the hash of its transaction. Reads the changes backwards from the latest one to
   * the last one before all these versions that wrote the complete document, and replays them.
   */
  async function readVersions(names: ReadonlySet<string>): Promise<{ versions: Map<string, Version>; count: number }> {
    const changes: ProgramChange[] = [];
    const missing = new Set(names);
    let token: string | undefined;
    let isFound = false;
    do {
      const batch = await load(token, 200, noFilter);
      for (const change of batch.rows) {
        missing.delete(change.transactionHash);
        changes.push(change);
        if (missing.size === 0 && isComplete(change.kind)) {
          isFound = true;
          break;
        }
      }
      token = batch.next;
    } while (!isFound && token !== undefined && changes.length < maxChanges);
    if (!isFound) {
      throw new Error(
        token === undefined
          ? "This node does not have the history back to these versions."
          : `More than ${maxChanges} changes lie between these versions and the last complete one: choose later versions.`,
      );
    }
    // Changes are latest first; those after the latest of these versions are not needed.
    const first = changes.findIndex(({ transactionHash }) => names.has(transactionHash));
    const needed = changes.slice(first).reverse();
    const versions = new Map<string, Version>();
    let version: Version = { data: undefined, access: undefined };
    for (let i = 0; i < needed.length; i += concurrency) {
      const hashes = needed.slice(i, i + concurrency).map(({ transactionHash }) => transactionHash);
      for (const { hash, body } of await Promise.all(hashes.map(readTransaction))) {
        const [name, value] = Object.entries(body?.storage ?? {})[0] ?? [];
        if (name === undefined || value === undefined) {
          throw new Error("Your key may not read a transaction of the history.");
        }
        version = applyChange(version, { name, value });
        if (names.has(hash)) {
          versions.set(hash, version);
        }
      }
    }
    return { versions, count: needed.length };
  }

  async function readTransaction(hash: string): Promise<TransactionResponse> {
    return await node.fetchJson(`chain/transactions/${hash}?withBody=true`, signal);
  }
}

function differenceTable(rows: readonly { readonly part: string; readonly difference: Difference }[]): HTMLElement {
  return table(
    "Differences",
    ["Where", "Change", "Before", "After"],
    rows.map(({ part, difference: { path, before, after } }) => [
      untrusted(path === "" ? part : part === "Document" ? path : `${part}: ${path}`, 200),
      before === undefined ? "added" : after === undefined ? "removed" : "changed",
      before === undefined ? undefined : h("del", {}, longText(before)),
      after === undefined ? undefined : h("ins", {}, longText(after)),
    ]),
  ).element;
}
