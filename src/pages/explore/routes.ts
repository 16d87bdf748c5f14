/**
 * Routes of the explorer: the fragment of the URL, after #. Links can be shared, and browsers do not send the fragment.
 */

/** Views without parameters, whose name is the whole route. */
const simpleViews = [
  "blocks",
  "transactions",
  "programs",
  "peers",
  "snapshots",
  "forks",
  "log",
  "keys",
  "new",
  "decode",
] as const;
/** Views of one item. The tree also has a view without one. */
const itemViews = ["block", "transaction", "program", "owner", "tree", "nullifier", "change", "search"] as const;

export type ItemView = (typeof itemViews)[number];

/** View, and the name of its item: a number, hash, address, key or text. */
export type Route =
  | { readonly kind: "overview" | "tree" | (typeof simpleViews)[number]; readonly name?: undefined }
  | { readonly kind: ItemView; readonly name: string };

/** Returns the relative URL of a view. */
export function linkTo({ kind, name }: Route): string {
  const segments = kind === "overview" ? [] : name === undefined ? [kind] : [kind, name];
  return `#/${segments.map(encodeURIComponent).join("/")}`;
}

/** Parses the fragment of a URL. Returns undefined if it names no view. */
export function readRoute(hash: string): Route | undefined {
  const segments = decode(
    hash
      .replace(/\?.*$/s, "")
      .replace(/^#?\/?/, "")
      .split("/"),
  );
  if (segments === undefined || segments.length > 2) {
    return undefined;
  }
  const [first, name] = segments;
  if (name !== undefined) {
    const kind = itemViews.find((view) => view === first);
    return kind && { kind, name };
  }
  const kind = first === "" ? "overview" : ([...simpleViews, "tree"] as const).find((view) => view === first);
  return kind && { kind };
}

/** Decodes percent encoding. Returns undefined if a segment is invalid. */
function decode(segments: readonly string[]): string[] | undefined {
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
