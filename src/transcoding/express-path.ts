/** Conversion of google.api.http path templates to Express paths. */

export interface ExpressPath {
  /** Path in Express syntax, such as `/v1/shelves/:shelf/books/:book`. */
  readonly path: string;
  /** Returns the values of the template's fields, in the order of the template. */
  readonly valuesOf: (params: Params) => string[];
  /** Sort key of paths that match the same requests: the more specific path sorts first. */
  readonly rank: string;
}

type Params = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Segment of a path: literal text or an Express parameter. */
type Piece = { readonly text: string } | { readonly parameter: string };

/**
 * Converts a template to an Express path: `/v1/{name=shelves/*}/books/{book.id}:move` becomes
 * `/v1/shelves/:name/books/:"book.id"\:move`.
 *
 * @param mayEndEmpty allows an empty field at the end of the path, as in `/v1/shelves/`.
 * @throws Error that names the template and describes what is wrong.
 */
export function toExpressPath(template: string, mayEndEmpty: boolean): ExpressPath {
  const match = /^(\/.*?)(?::([\w.~-]+))?$/.exec(template);
  if (match === null) {
    throw new Error(`Path template "${template}" must start with "/".`);
  }
  const [, segments = "", verb] = match;
  const fields: Piece[][] = [];
  let path = "";
  let unnamed = 0;
  for (const [token, name, pattern = "*"] of segments.matchAll(/\{([a-z][\w.]*)(?:=([^{}]+))?\}|[^{}]+|[{}]/gi)) {
    if (token === "{" || token === "}") {
      throw new Error(`Path template "${template}" has an unmatched brace.`);
    }
    const pieces = (name === undefined ? token : pattern)
      .split("/")
      .map((segment, i): Piece =>
        toPiece(segment, () => (name === undefined ? `_${unnamed++}` : i === 0 ? name : `${name}_${i}`)),
      );
    path += pieces.map(formatPiece).join("/");
    if (name !== undefined) {
      fields.push(pieces);
    }
  }

  function toPiece(segment: string, nameNext: () => string): Piece {
    if (segment === "*" || segment === "**") {
      return { parameter: (segment === "*" ? ":" : "*") + nameNext() };
    }
    if (!/^[\w.~-]*$/.test(segment)) {
      throw new Error(`Path template "${template}": segment "${segment}" is neither plain text nor a field.`);
    }
    return { text: segment };
  }

  return {
    path: verb === undefined ? (mayEndEmpty ? path.replace(/:[^:/]+$/, "{$&}") : path) : `${path}\\:${verb}`,
    valuesOf: (params) => fields.map((pieces) => pieces.map((piece) => valueOf(piece, params)).join("/")),
    rank: rankOf(path, verb),
  };
}

/** Formats a piece in Express syntax. Parameter names other than letters, digits and underscores are quoted. */
function formatPiece(piece: Piece): string {
  if ("text" in piece) {
    return piece.text;
  }
  const [kind, name] = [piece.parameter[0]!, piece.parameter.slice(1)];
  return kind + (/^\w+$/.test(name) ? name : JSON.stringify(name));
}

function valueOf(piece: Piece, params: Params): string {
  if ("text" in piece) {
    return piece.text;
  }
  const value = params[piece.parameter.slice(1)] ?? "";
  return typeof value === "string" ? value : value.join("/");
}

/**
 * Returns the sort key of a path. Literal segments sort first, then a last parameter with a verb, then other
 * parameters, then wildcards.
 */
function rankOf(path: string, verb: string | undefined): string {
  const ranks = path.split("/").map((segment) => (segment.startsWith("*") ? "3" : segment.startsWith(":") ? "2" : "0"));
  return ranks.join("").replace(/2$/, verb === undefined ? "2" : "1");
}
