/**
 * Routes of the explorer: the fragment of the URL, after #. Links can be shared, and browsers do not send the fragment.
 */

/** Views without parameters, whose name is the whole route. */
const simpleViews = ["blocks", "transactions", "peers", "snapshots", "forks", "log", "keys", "new"] as const;
type SimpleView = (typeof simpleViews)[number];

/** View with its parameters. */
export type Route =
  | { readonly kind: "overview" }
  /** `name` is a number, a hash, or `latest`. */
  | { readonly kind: "block"; readonly name: string }
  | { readonly kind: "transaction"; readonly hash: string }
  | { readonly kind: "program"; readonly address: string }
  | { readonly kind: "owner"; readonly key: string }
  | { readonly kind: "tree"; readonly commitment: string | undefined }
  | { readonly kind: "nullifier"; readonly hash: string }
  | { readonly kind: SimpleView }
  | { readonly kind: "change"; readonly address: string }
  | { readonly kind: "search"; readonly text: string };

/** Returns the relative URL of a view. */
export function linkTo(route: Route): string {
  return `#/${segmentsOf(route).map(encodeURIComponent).join("/")}`;
}

function segmentsOf(route: Route): string[] {
  switch (route.kind) {
    case "overview":
      return [];
    case "block":
      return ["block", route.name];
    case "transaction":
      return ["transaction", route.hash];
    case "program":
      return ["program", route.address];
    case "owner":
      return ["owner", route.key];
    case "tree":
      return route.commitment === undefined ? ["tree"] : ["tree", route.commitment];
    case "nullifier":
      return ["nullifier", route.hash];
    case "change":
      return ["change", route.address];
    case "search":
      return ["search", route.text];
    default:
      return [route.kind];
  }
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
  const [kind, name] = segments;
  if (name === undefined) {
    return kind === "" ? { kind: "overview" } : kind === "tree" ? { kind, commitment: undefined } : readSimple(kind);
  }
  switch (kind) {
    case "block":
      return { kind, name };
    case "transaction":
    case "nullifier":
      return { kind, hash: name };
    case "program":
    case "change":
      return { kind, address: name };
    case "owner":
      return { kind, key: name };
    case "tree":
      return { kind, commitment: name };
    case "search":
      return { kind, text: name };
    default:
      return undefined;
  }
}

/** Returns the route of a view without parameters; undefined if there is none. */
function readSimple(name: string | undefined): Route | undefined {
  const kind = simpleViews.find((view) => view === name);
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
