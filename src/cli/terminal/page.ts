/** Output of a list page for people. */
import { print, table } from "./output.js";
import { widthOf, wrap } from "./wrap.js";

/** Members of a page in addition to its items. */
export interface PageBody {
  readonly nextPageToken?: string;
  /** First block whose content the node lists, for lists of block content. */
  readonly fromBlock?: number;
}

/**
 * Prints a page, and the way to the next one.
 *
 * @param rows Rows without the heading.
 * @param empty Text to print if there are no rows.
 */
export function printPage(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  { nextPageToken, fromBlock = 1 }: PageBody,
  empty: string,
): void {
  print(...(rows.length === 0 ? [empty] : table([heading, ...rows])));
  if (nextPageToken !== undefined) {
    printNote(`Next page: repeat the command with --page-token ${nextPageToken}`);
  } else if (fromBlock > 1) {
    printNote(`This node does not list blocks before ${fromBlock}.`);
  }
}

function printNote(text: string): void {
  print("", ...wrap(text, widthOf(process.stdout), false));
}
