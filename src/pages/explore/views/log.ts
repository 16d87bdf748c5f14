/** Shows the public log of the node. */
import { dataTable, fromList, containing, oneOf } from "../table/data-table.js";
import { h } from "../dom.js";
import { given, note, timeAgo } from "../parts.js";
import type { Looking, View } from "../view.js";

interface LogLine {
  readonly time: number;
  readonly level: string;
  readonly message: string;
}

const levels = ["trace", "debug", "info", "warn", "error", "fatal"];
const classes: Readonly<Record<string, string>> = { warn: "warn", error: "bad", fatal: "bad" };

export async function viewLog({ node, signal }: Looking): Promise<View> {
  const answer = await node.ask<readonly LogLine[] | { readonly lines: readonly LogLine[] }>("public_logs", signal);
  const lines = "lines" in answer ? answer.lines : answer;
  return {
    title: "Public log",
    contents: [
      note(
        "The latest lines that the node shows to everyone. It keeps a limited number of them, and drops the oldest.",
      ),
      await dataTable<LogLine>({
        id: "log",
        label: "Public log",
        columns: [
          { name: "When", cell: ({ time }) => timeAgo(time), csv: ({ time }) => new Date(time).toISOString() },
          {
            name: "Level",
            cell: ({ level }) => h("span", { class: classes[level] }, level),
            csv: ({ level }) => level,
          },
          { name: "Message", cell: ({ message }) => given(message, 2_000), csv: ({ message }) => message },
        ],
        filters: [
          oneOf("level", "Level", levels, ({ level }) => level),
          containing("text", "Message contains", ({ message }) => message),
        ],
        empty: "No line.",
        load: fromList([...lines].reverse()),
      }),
    ],
  };
}
