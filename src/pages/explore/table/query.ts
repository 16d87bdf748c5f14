/** Query of a view: the part of the URL fragment after `?`. Has the filters, pages and selections of the view. */

/** Returns the query of the shown view. */
export function readQuery(): URLSearchParams {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** Changes parameters of the query without loading the view again. Undefined or an empty text removes a parameter. */
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
