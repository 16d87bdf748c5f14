/** Tables with pages, filters that are part of the address, and a CSV file. */
import { csvRow, type CsvValue, downloadCsv } from "./csv.js";
import { button, type Content, h, say } from "../dom.js";
import { messageOf, table } from "../parts.js";
import { changeQuery, readQuery } from "./query.js";
import { counted } from "../words.js";

/** Column of a table. */
export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => Content;
  /** Returns the complete value for the CSV file. */
  readonly csv: (row: Row) => CsvValue;
}

/** Filter of a table. Filters apply in this page, since the API has none. */
export interface Filter<Row> {
  /** Name of the parameter in the address. */
  readonly name: string;
  readonly label: string;
  /** Values to choose from; a text field without them. */
  readonly choices?: readonly string[];
  readonly accepts: (row: Row, wanted: string) => boolean;
}

/** Part of a list, as the node returns it. */
export interface Batch<Row> {
  readonly rows: readonly Row[];
  /** Token for the next part; undefined for the last part. */
  readonly next?: string | undefined;
}

/** Table and its data. */
export interface DataTable<Row> {
  /** Name of the file; it precedes the parameters in the address. */
  readonly id: string;
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly filters?: readonly Filter<Row>[];
  /** Text for a list without rows. */
  readonly empty: string;
  readonly load: (token: string | undefined, size: number) => Promise<Batch<Row>>;
}

const [rowsShown, rowsRequested, maxCsvRows, maxScanned] = [25, 200, 10_000, 4_000];

/** Returns a loader for a list that is complete. */
export function fromList<Row>(rows: readonly Row[]): DataTable<Row>["load"] {
  return (token, size) => {
    const start = Number(token ?? 0);
    const end = start + size;
    return Promise.resolve({ rows: rows.slice(start, end), next: end < rows.length ? String(end) : undefined });
  };
}

/** Returns the table with its first page, or the page that the address names. */
export async function dataTable<Row>(settings: DataTable<Row>): Promise<HTMLElement> {
  const { id, label, columns, filters = [], empty, load } = settings;
  const query = readQuery();
  const wanted = new Map(filters.map(({ name }) => [name, query.get(`${id}.${name}`) ?? ""]));
  const isFiltered = (): boolean => [...wanted.values()].some((value) => value !== "");
  const accepts = (row: Row): boolean =>
    filters.every(({ name, accepts }) => wanted.get(name) === "" || accepts(row, wanted.get(name)!));

  const first = query.get(`${id}.page`) ?? undefined;
  /** Tokens of the pages up to the shown one. */
  let pages: (string | undefined)[] = [first];
  const { element, body, add } = table(
    label,
    columns.map(({ name }) => name),
  );
  const said = h("p", { class: "dim", role: "status" });
  const trouble = h("p", { class: "bad", role: "alert", hidden: true });
  let next: string | undefined;
  let turn = 0;

  /** Loads a page. With a filter, parts are loaded until there are enough rows. */
  async function read(token: string | undefined): Promise<{ rows: Row[]; next: string | undefined; scanned: number }> {
    if (!isFiltered()) {
      const batch = await load(token, rowsShown);
      return { rows: [...batch.rows], next: batch.next, scanned: batch.rows.length };
    }
    const rows: Row[] = [];
    let [scanned, after] = [0, token];
    do {
      const batch = await load(after, rowsRequested);
      rows.push(...batch.rows.filter(accepts));
      scanned += batch.rows.length;
      after = batch.next;
    } while (after !== undefined && rows.length < rowsShown && scanned < maxScanned);
    return { rows, next: after, scanned };
  }

  async function show(): Promise<void> {
    const own = ++turn;
    const page = await read(pages.at(-1));
    // A later request of the reader may have finished before this one.
    if (own !== turn) {
      return;
    }
    next = page.next;
    body.replaceChildren();
    add(page.rows.map((row) => columns.map(({ cell }) => cell(row))));
    element.hidden = page.rows.length === 0;
    const found =
      page.rows.length === 0 ? (isFiltered() ? "No row matches." : empty) : counted(page.rows.length, "row");
    const searched = isFiltered() ? ` ${counted(page.scanned, "row")} searched.` : "";
    const more = next === undefined ? "" : " There are more.";
    say(said, `${found}${found.endsWith(".") ? "" : "."}${searched}${more}`);
    const isOnly = pages.length === 1 && pages[0] === undefined;
    toStart.disabled = isOnly;
    back.disabled = pages.length === 1;
    forward.disabled = next === undefined;
    pager.hidden = isOnly && next === undefined;
    tools.hidden = page.rows.length === 0 && isOnly && !isFiltered();
  }

  async function move(to: (string | undefined)[]): Promise<void> {
    const before = pages;
    pages = to;
    changeQuery({
      [`${id}.page`]: pages.at(-1),
      ...Object.fromEntries([...wanted].map(([name, value]) => [`${id}.${name}`, value])),
    });
    trouble.hidden = true;
    try {
      await show();
    } catch (error) {
      pages = before;
      complain(error);
    }
  }

  function complain(error: unknown): void {
    trouble.hidden = false;
    say(trouble, messageOf(error));
  }

  const toStart = button("First", { "aria-label": `First page: ${label}` }, () => move([undefined]));
  const back = button("Previous", { "aria-label": `Previous page: ${label}` }, () => move(pages.slice(0, -1)));
  const forward = button("Next", { "aria-label": `Next page: ${label}` }, () => move([...pages, next]));
  const pager = h("p", { class: "buttons" }, toStart, " ", back, " ", forward);
  const csv = button("CSV", { "aria-label": `Download as CSV: ${label}`, title: "Download as CSV" }, async () => {
    csv.disabled = true;
    trouble.hidden = true;
    try {
      const { text, rows, isCut } = await csvOf();
      downloadCsv(`gatehouse-${id}`, text);
      say(said, `${counted(rows, "row")} in the file.${isCut ? " The list is longer: narrow it by a filter." : ""}`);
    } catch (error) {
      complain(error);
    }
    csv.disabled = false;
  });

  /** Returns the file of all rows that the filters accept. */
  async function csvOf(): Promise<{ text: string; rows: number; isCut: boolean }> {
    let text = csvRow(columns.map(({ name }) => name));
    let [rows, scanned] = [0, 0];
    let token: string | undefined;
    do {
      const batch = await load(token, rowsRequested);
      for (const row of batch.rows.filter(accepts).slice(0, maxCsvRows - rows)) {
        text += csvRow(columns.map(({ csv }) => csv(row)));
        rows++;
      }
      scanned += batch.rows.length;
      token = batch.next;
      say(said, `${counted(scanned, "row")} loaded…`);
    } while (token !== undefined && rows < maxCsvRows && scanned < 5 * maxCsvRows);
    return { text, rows, isCut: token !== undefined };
  }

  const fields = filters.map(({ name, label, choices }) => {
    const field = choices === undefined ? h("input", { type: "search", spellcheck: "false" }) : select(choices);
    field.value = wanted.get(name)!;
    let wait: ReturnType<typeof setTimeout> | undefined;
    const apply = (): void => {
      clearTimeout(wait);
      if (wanted.get(name) !== field.value.trim()) {
        wanted.set(name, field.value.trim());
        void move([undefined]);
      }
    };
    field.addEventListener("change", apply);
    field.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(apply, 300);
    });
    return h("label", {}, label, " ", field);
  });
  const form = h("div", { class: "filters", role: "group", "aria-label": `Filters: ${label}` }, ...fields);
  const tools = h("div", { class: "tools" }, ...(fields.length > 0 ? [form] : []), csv);
  await show();
  return h("div", { class: "data" }, tools, trouble, element, said, pager);
}

function select(choices: readonly string[]): HTMLSelectElement {
  return h("select", {}, h("option", { value: "" }, "all"), ...choices.map((choice) => h("option", {}, choice)));
}

/** Returns a filter by a text that is part of a value, in any case. */
export function containing<Row>(name: string, label: string, textOf: (row: Row) => string): Filter<Row> {
  return {
    name,
    label,
    accepts: (row, wanted) => textOf(row).toLowerCase().includes(wanted.toLowerCase()),
  };
}

/** Returns a filter by one of several values. */
export function oneOf<Row>(
  name: string,
  label: string,
  choices: readonly string[],
  valueOf: (row: Row) => string,
): Filter<Row> {
  return { name, label, choices, accepts: (row, wanted) => valueOf(row) === wanted };
}
