/** Tables with pages, filters and CSV export. The URL has the filters and the page. */
import { csvRow, type CsvValue, downloadCsv } from "./csv.js";
import { button, type Content, h, setText } from "../dom.js";
import { messageOf, table } from "../parts.js";
import { changeQuery, readQuery } from "./query.js";
import { counted } from "../format.js";

/** Column of a table. */
export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => Content;
  /** Returns the complete value for the CSV file. */
  readonly csv: (row: Row) => CsvValue;
}

/** Returns a column of a member of the rows. By default, the table shows it as in the file. */
export function column<Key extends string, Row extends Readonly<Partial<Record<Key, CsvValue>>>>(
  name: string,
  key: Key,
  show: (value: Row[Key], row: Row) => Content = (value) => value ?? undefined,
): Column<Row> {
  return { name, cell: (row) => show(row[key], row), csv: (row) => row[key] };
}

/** Filter of a table, which the page applies to the rows that it loads. */
export interface Filter<Row> {
  /** Name of the parameter in the URL. */
  readonly name: string;
  readonly label: string;
  /** Values of a selection list; undefined for a text field. */
  readonly choices?: readonly string[];
  readonly accepts: (row: Row, value: string) => boolean;
}

/** Page of a list, as the node returns it. */
export interface Batch<Row> {
  readonly rows: readonly Row[];
  /** Token for the next page; undefined on the last page. */
  readonly next?: string | undefined;
}

/** Settings of a table. */
export interface DataTable<Row> {
  /** Part of the name of the CSV file, and prefix of the parameters in the URL. */
  readonly id: string;
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly filters?: readonly Filter<Row>[];
  /** Text for a list without rows. */
  readonly empty: string;
  /** Loads a page. Gets the values of the filters by name, for the filters that the node applies faster. */
  readonly load: (token: string | undefined, size: number, values: ReadonlyMap<string, string>) => Promise<Batch<Row>>;
}

/** Rows per shown page; rows per request with a filter or for a file; rows in a file; rows searched for a page. */
const [shownRows, requestedRows, maxCsvRows, maxSearchedRows] = [25, 200, 10_000, 4_000];

/** Returns a loader for a complete list. */
export function fromList<Row>(rows: readonly Row[]): DataTable<Row>["load"] {
  return (token, size) => {
    const start = Number(token ?? 0);
    const end = start + size;
    return Promise.resolve({ rows: rows.slice(start, end), next: end < rows.length ? String(end) : undefined });
  };
}

/** Returns the table with the page that the URL names, by default the first page. */
export async function dataTable<Row>(settings: DataTable<Row>): Promise<HTMLElement> {
  const { id, label, columns, filters = [], empty, load } = settings;
  const query = readQuery();
  const values = new Map(filters.map(({ name }) => [name, query.get(`${id}.${name}`) ?? ""]));
  const isFiltered = (): boolean => [...values.values()].some((value) => value !== "");
  const accepts = (row: Row): boolean =>
    filters.every(({ name, accepts }) => values.get(name) === "" || accepts(row, values.get(name)!));

  const first = query.get(`${id}.page`) ?? undefined;
  /** Tokens of the shown page and of the pages before it. */
  let pages: (string | undefined)[] = [first];
  const { element, body, add } = table(
    label,
    columns.map(({ name }) => name),
  );
  const status = h("p", { class: "dim", role: "status" });
  const alert = h("p", { class: "bad", role: "alert", hidden: true });
  let next: string | undefined;
  let lastRead = 0;

  /** Loads a page. With a filter, loads pages of the node until enough rows match. */
  async function read(token: string | undefined): Promise<{ rows: Row[]; next: string | undefined; searched: number }> {
    if (!isFiltered()) {
      const batch = await load(token, shownRows, values);
      return { rows: [...batch.rows], next: batch.next, searched: batch.rows.length };
    }
    const rows: Row[] = [];
    let [searched, after] = [0, token];
    do {
      const batch = await load(after, requestedRows, values);
      rows.push(...batch.rows.filter(accepts));
      searched += batch.rows.length;
      after = batch.next;
    } while (after !== undefined && rows.length < shownRows && searched < maxSearchedRows);
    return { rows, next: after, searched };
  }

  async function show(): Promise<void> {
    const id = ++lastRead;
    const page = await read(pages.at(-1));
    // Discards the page if the reader has requested another page since.
    if (id !== lastRead) {
      return;
    }
    next = page.next;
    body.replaceChildren();
    add(page.rows.map((row) => columns.map(({ cell }) => cell(row))));
    element.hidden = page.rows.length === 0;
    const count =
      page.rows.length === 0 ? (isFiltered() ? "No row matches." : empty) : counted(page.rows.length, "row");
    const progress = isFiltered() ? ` ${counted(page.searched, "row")} searched.` : "";
    const more = next === undefined ? "" : " There are more.";
    setText(status, `${count}${count.endsWith(".") ? "" : "."}${progress}${more}`);
    const isFirst = pages.length === 1 && pages[0] === undefined;
    toStart.disabled = isFirst;
    back.disabled = pages.length === 1;
    forward.disabled = next === undefined;
    pager.hidden = isFirst && next === undefined;
    tools.hidden = page.rows.length === 0 && isFirst && !isFiltered();
  }

  /** Shows other pages, and restores the previous ones if the request fails. */
  async function move(to: (string | undefined)[]): Promise<void> {
    const previous = pages;
    pages = to;
    changeQuery({
      [`${id}.page`]: pages.at(-1),
      ...Object.fromEntries([...values].map(([name, value]) => [`${id}.${name}`, value])),
    });
    alert.hidden = true;
    try {
      await show();
    } catch (error) {
      pages = previous;
      showError(error);
    }
  }

  function showError(error: unknown): void {
    alert.hidden = false;
    setText(alert, messageOf(error));
  }

  const toStart = button("First", { "aria-label": `First page: ${label}` }, () => move([undefined]));
  const back = button("Previous", { "aria-label": `Previous page: ${label}` }, () => move(pages.slice(0, -1)));
  const forward = button("Next", { "aria-label": `Next page: ${label}` }, () => move([...pages, next]));
  const pager = h("p", { class: "buttons" }, toStart, " ", back, " ", forward);
  const csv = button("CSV", { "aria-label": `Download as CSV: ${label}`, title: "Download as CSV" }, async () => {
    csv.disabled = true;
    alert.hidden = true;
    try {
      const { text, rows, isTruncated } = await csvOf();
      downloadCsv(`gatehouse-${id}`, text);
      setText(status, `${counted(rows, "row")} in the file.${isTruncated ? " The list is longer: use a filter." : ""}`);
    } catch (error) {
      showError(error);
    }
    csv.disabled = false;
  });

  /** Returns the file of all rows that the filters accept. */
  async function csvOf(): Promise<{ text: string; rows: number; isTruncated: boolean }> {
    let text = csvRow(columns.map(({ name }) => name));
    let [rows, searched] = [0, 0];
    let token: string | undefined;
    do {
      const batch = await load(token, requestedRows, values);
      for (const row of batch.rows.filter(accepts).slice(0, maxCsvRows - rows)) {
        text += csvRow(columns.map(({ csv }) => csv(row)));
        rows++;
      }
      searched += batch.rows.length;
      token = batch.next;
      setText(status, `${counted(searched, "row")} loaded…`);
    } while (token !== undefined && rows < maxCsvRows && searched < 5 * maxCsvRows);
    return { text, rows, isTruncated: token !== undefined };
  }

  const fields = filters.map(({ name, label, choices }) => {
    const field = choices === undefined ? h("input", { type: "search", spellcheck: "false" }) : select(choices);
    field.value = values.get(name)!;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const apply = (): void => {
      clearTimeout(timer);
      if (values.get(name) !== field.value.trim()) {
        values.set(name, field.value.trim());
        void move([undefined]);
      }
    };
    field.addEventListener("change", apply);
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(apply, 300);
    });
    return h("label", {}, label, " ", field);
  });
  const form = h("div", { class: "filters", role: "group", "aria-label": `Filters: ${label}` }, ...fields);
  const tools = h("div", { class: "tools" }, ...(fields.length > 0 ? [form] : []), csv);
  await show();
  return h("div", { class: "data" }, tools, alert, element, status, pager);
}

function select(choices: readonly string[]): HTMLSelectElement {
  return h("select", {}, h("option", { value: "" }, "all"), ...choices.map((choice) => h("option", {}, choice)));
}

/**
 * Returns a filter for values that contain a text, ignoring case.
 *
 * @param partOf returns the text that values contain, if it differs from what the reader enters.
 */
export function containing<Row>(
  name: string,
  label: string,
  textOf: (row: Row) => string,
  partOf: (value: string) => string = (value) => value,
): Filter<Row> {
  return {
    name,
    label,
    accepts: (row, value) => textOf(row).toLowerCase().includes(partOf(value).toLowerCase()),
  };
}

/** Returns a filter for rows with a chosen value. */
export function oneOf<Row>(
  name: string,
  label: string,
  choices: readonly string[],
  valueOf: (row: Row) => string,
): Filter<Row> {
  return { name, label, choices, accepts: (row, value) => valueOf(row) === value };
}
