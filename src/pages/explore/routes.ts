/** Routes: the part of the address behind #. Links can be shared, and no server sees the route. */

/** View with its parameters. */
export type Route =
  | { readonly kind: "overview" }
  /** By number, by hash, or `latest`. */
  | { readonly kind: "block"; readonly name: string }
  | { readonly kind: "transaction"; readonly hash: string }
  | { readonly kind: "program"; readonly address: string }
  | { readonly kind: "owner"; readonly key: string }
  | { readonly kind: "tree"; readonly commitment: string | undefined }
  | { readonly kind: "nullifier"; readonly hash: string }
  | { readonly kind: "blocks" | "transactions" | "peers" | "snapshots" | "forks" | "log" }
  | { readonly kind: "search"; readonly text: string };

/** Returns the address of a view. */
export function linkTo(route: Route): string {
  return `#/${partsOf(route).map(encodeURIComponent).join("/")}`;
}

function partsOf(route: Route): string[] {
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
    case "blocks":
    case "transactions":
    case "peers":
    case "snapshots":
    case "forks":
    case "log":
      return [route.kind];
    case "search":
      return ["search", route.text];
  }
}

/** Returns the view that an address names; undefined if there is none. */
export function readRoute(hash: string): Route | undefined {
  const parts = decode(
    hash
      .replace(/\?.*$/s, "")
      .replace(/^#?\/?/, "")
      .split("/"),
  );
  if (parts === undefined || parts.length > 2) {
    return undefined;
  }
  const [kind, name] = parts;
  if (name === undefined) {
    return kind === "" ? { kind: "overview" } : kind === "tree" ? { kind, commitment: undefined } : readPlain(kind);
  }
  switch (kind) {
    case "block":
      return { kind, name };
    case "transaction":
    case "nullifier":
      return { kind, hash: name };
    case "program":
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

/** Returns a view without parameters. */
function readPlain(kind: string | undefined): Route | undefined {
  switch (kind) {
    case "blocks":
    case "transactions":
    case "peers":
    case "snapshots":
    case "forks":
    case "log":
      return { kind };
    default:
      return undefined;
  }
}

function decode(parts: readonly string[]): string[] | undefined {
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
