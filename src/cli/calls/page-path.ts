/** The address of a page of a list. */
import type { PageFlags } from "../usage/flags.js";

/**
 * A path of a node, with the page that is wanted.
 *
 * @param filters parameters of the query; those that are undefined are left out.
 */
export function pagePath(
  path: string,
  { limit, pageToken }: PageFlags,
  filters: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = { ...filters, pageSize: limit?.toString(), pageToken };
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `${path}?${new URLSearchParams(given).toString()}`;
}
