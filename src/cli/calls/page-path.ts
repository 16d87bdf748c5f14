/** Paths of list pages. */
import type { PageFlags } from "../usage/flags.js";

/**
 * Returns the path of a page of a list.
 *
 * @param filters Query parameters; undefined ones are omitted.
 */
export function pagePath(
  path: string,
  { limit, pageToken }: PageFlags,
  filters: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = { ...filters, pageSize: limit?.toString(), pageToken };
  const parameters = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `${path}?${new URLSearchParams(parameters).toString()}`;
}
