/** What is in the tables that commands print for people. */

/** The rows of a page of a list, as lines. */
export function withoutHeading(stdout: string): string[] {
  return stdout
    .replace(/\n\n[^]*$/, "\n")
    .split("\n")
    .slice(1, -1);
}

/** How the list goes on; undefined on its last page. */
export function pageToken(stdout: string): string | undefined {
  return /\n\nNext page: repeat the command with --page-token (\S+)\n$/.exec(stdout)?.[1];
}
