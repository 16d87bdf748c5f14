/** Parsers of the tables that commands print. */

/** Returns the rows of a page of a list, as lines. */
export function withoutHeading(stdout: string): string[] {
  return stdout
    .replace(/\n\n[^]*$/, "\n")
    .split("\n")
    .slice(1, -1);
}

/** Returns the token of the next page; undefined on the last page. */
export function pageToken(stdout: string): string | undefined {
  return /\n\nNext page: repeat the command with --page-token (\S+)\n$/.exec(stdout)?.[1];
}
