/** Shows the public log of the node. */
import { column, containing, dataTable, fromList, oneOf } from "../table/data-table.js";
import { h } from "../dom.js";
import { note, timeAndAge, untrusted } from "../parts.js";
import type { View, ViewContext } from "../view.js";

interface LogLine {
  readonly time: number;
  readonly level: string;
  readonly message: string;
}

const levels = ["trace", "debug", "info", "warn", "error", "fatal"];
const classes: Readonly<Record<string, string>> = { warn: "warn", error: "bad", fatal: "bad" };

export async function viewLog({ node, signal }: ViewContext): Promise<View> {
  const response = await node.fetchJson<readonly LogLine[] | { readonly lines: readonly LogLine[] }>(
    "public_logs",
    signal,
  );
  const lines = "lines" in response ? response.lines : response;
  return {
    title: "Public log",
    contents: [
      note(
        "The latest lines of the log that everyone may read. The node stores a limited number of lines and drops the oldest.",
      ),
      await dataTable<LogLine>({
        id: "log",
        label: "Public log",
        columns: [
          { name: "Time", cell: ({ time }) => timeAndAge(time), csv: ({ time }) => new Date(time).toISOString() },
          column("Level", "level", (level) => h("span", { class: classes[level] }, level)),
          column("Message", "message", (message) => untrusted(message, 2_000)),
        ],
        filters: [
          oneOf("level", "Level", levels, ({ level }) => level),
          containing("text", "Message contains", ({ message }) => message),
        ],
        empty: "No lines.",
        load: fromList([...lines].reverse()),
      }),
    ],
  };
}
