/** A page of a list, for people. */
import { print, table } from "./output.js";
import { widthOf, wrap } from "./wrap.js";

/** What a node says of a page, beside what is in it. */
export interface PageBody {
  readonly nextPageToken?: string;
  /** Of older blocks than this one nothing is listed; where it lists what is in blocks. */
  readonly fromBlock?: number;
}

/**
 * Prints a page, and how to go on.
 *
 * @param rows without the heading.
 * @param empty what is said in place of a table where there are none.
 */
export function printPage(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  { nextPageToken, fromBlock = 1 }: PageBody,
  empty: string,
): void {
  print(...(rows.length === 0 ? [empty] : table([heading, ...rows])));
  if (nextPageToken !== undefined) {
    printNote(`The next page: the same with --page-token ${nextPageToken}`);
  } else if (fromBlock > 1) {
    printNote(`What is in blocks before ${fromBlock} is not listed by this node.`);
  }
}

function printNote(text: string): void {
  print("", ...wrap(text, widthOf(process.stdout), false));
}
