/** Path templates of google.api.http as paths of Express. */

/** A path of Express, and what its parameters are in the template. */
export interface ExpressPath {
  /** Such as `/v1/shelves/:shelf/books/:book`. */
  readonly path: string;
  /** The values of the template's fields, in the template's order. */
  readonly valuesOf: (params: Params) => string[];
  /** Orders paths that match the same requests: the one that says more comes first. */
  readonly rank: string;
}

type Params = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A part of what a field takes: text that stands there, or a parameter. */
type Piece = { readonly text: string } | { readonly parameter: string };

/**
 * Makes the path of a template: `/v1/{name=shelves/*}/books/{book.id}:move` becomes `/v1/shelves/:name/books/:"book.id"\:move`.
 *
 * @param mayEndEmpty a field at the end of the path may be empty, as in `/v1/shelves/`.
 * @throws Error that names the template and what is wrong with it.
 */
export function toExpressPath(template: string, mayEndEmpty: boolean): ExpressPath {
  const whole = /^(\/.*?)(?::([\w.~-]+))?$/.exec(template);
  if (whole === null) {
    throw new Error(`Path template "${template}" must start with "/".`);
  }
  const [, segments = "", verb] = whole;
  const fields: Piece[][] = [];
  let path = "";
  let unnamed = 0;
  for (const [token, name, pattern = "*"] of segments.matchAll(/\{([a-z][\w.]*)(?:=([^{}]+))?\}|[^{}]+|[{}]/gi)) {
    if (token === "{" || token === "}") {
      throw new Error(`Path template "${template}" has a brace that stands alone.`);
    }
    const pieces = (name === undefined ? token : pattern)
      .split("/")
      .map((segment, i): Piece =>
        toPiece(segment, () => (name === undefined ? `_${unnamed++}` : i === 0 ? name : `${name}_${i}`)),
      );
    path += pieces.map(show).join("/");
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

/** As Express writes it; what is no name of JavaScript stands in quotes. */
function show(piece: Piece): string {
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

/** Text before a parameter with a verb, that before a parameter, and that before any number of segments. */
function rankOf(path: string, verb: string | undefined): string {
  const ranks = path.split("/").map((segment) => (segment.startsWith("*") ? "3" : segment.startsWith(":") ? "2" : "0"));
  return ranks.join("").replace(/2$/, verb === undefined ? "2" : "1");
}
