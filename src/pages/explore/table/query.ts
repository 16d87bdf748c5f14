/** Query of a view: the part of the address after ? behind #, which holds filters, pages and selections. */

/** Returns the query of the shown view. */
export function readQuery(): URLSearchParams {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** Changes parameters of the address. Undefined or an empty text removes one. Nothing is loaded again. */
export function changeQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const query = readQuery();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") {
      query.delete(name);
    } else {
      query.set(name, value);
    }
  }
  const path = location.hash.split("?")[0] || "#/";
  history.replaceState(history.state, "", query.size === 0 ? path : `${path}?${query.toString()}`);
}
