/**
 * Route table that finds the endpoints of a path, built once at startup. Paths without parameters are looked up
 * directly. Other paths are compared with the templates of as many segments, in which a literal wins over a parameter.
 *
 * Templates are those of google.api.http, in the subset that the node's own routes use: literal segments, and `{field}`
 * for exactly one segment. Other templates are rejected at startup, so that none is matched incorrectly.
 */

/** Endpoints of a path by HTTP method, and the decoded values of the template's fields in the template's order. */
export interface RouteMatch<T> {
  readonly endpoints: ReadonlyMap<string, T>;
  readonly parameters: readonly string[];
}

interface Route<T> {
  /** Text of each segment; undefined for a field. */
  readonly literals: readonly (string | undefined)[];
  readonly endpoints: Map<string, T>;
  /** Sort key of templates with as many segments: literals before fields. */
  readonly rank: string;
}

export class RouteTable<T> {
  readonly #routes = new Map<string, Route<T>>();
  readonly #exact = new Map<string, RouteMatch<T>>();
  readonly #bySegments = new Map<number, Route<T>[]>();
  readonly #owners = new Map<string, string>();

  /**
   * Declares an endpoint; `owner` names the endpoint in errors.
   *
   * @throws Error that names both owners if another endpoint has the same method and path shape.
   */
  add(httpMethod: string, template: string, owner: string, endpoint: T): void {
    const literals = parsePathTemplate(template);
    const shape = `/${literals.map((literal) => literal ?? "{}").join("/")}`;
    const other = this.#owners.get(`${httpMethod} ${shape}`);
    if (other !== undefined) {
      throw new Error(
        `${httpMethod} ${template} of ${owner} is ambiguous: ${httpMethod} ${other} matches the same paths.`,
      );
    }
    this.#owners.set(`${httpMethod} ${shape}`, `${template} of ${owner}`);
    let route = this.#routes.get(shape);
    if (route === undefined) {
      const rank = literals.map((literal) => (literal === undefined ? "1" : "0")).join("");
      route = { literals, endpoints: new Map(), rank };
      this.#routes.set(shape, route);
      const sameLength = [...(this.#bySegments.get(literals.length) ?? []), route];
      this.#bySegments.set(
        literals.length,
        sameLength.sort((a, b) => a.rank.localeCompare(b.rank)),
      );
      if (!rank.includes("1")) {
        this.#exact.set(template, { endpoints: route.endpoints, parameters: [] });
      }
    }
    route.endpoints.set(httpMethod, endpoint);
  }

  /** Finds a path (without query). Tolerates one trailing slash. Malformed percent-encoding matches nothing. */
  find(path: string): RouteMatch<T> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) {
      return exact;
    }
    const segments = splitPath(path);
    if (segments === undefined) {
      return undefined;
    }
    // Drop the trailing slash if the path matches without it. Otherwise the path ends in an empty parameter.
    const trimmed =
      segments.length > 1 && segments.at(-1) === "" ? this.#findSegments(segments.slice(0, -1)) : undefined;
    return trimmed ?? this.#findSegments(segments);
  }

  #findSegments(segments: readonly string[]): RouteMatch<T> | undefined {
    const found = this.#bySegments
      .get(segments.length)
      ?.find(({ literals }) => literals.every((literal, i) => literal === undefined || literal === segments[i]));
    return (
      found && {
        endpoints: found.endpoints,
        parameters: segments.filter((_, i) => found.literals[i] === undefined),
      }
    );
  }
}

/**
 * Parses a template such as `/storage-program/{storage_address}` to the text of each segment; undefined for a field.
 *
 * @throws Error that names the template and describes what is wrong.
 */
function parsePathTemplate(text: string): (string | undefined)[] {
  if (!text.startsWith("/")) {
    throw new Error(`Path template "${text}" must start with "/".`);
  }
  const seen = new Set<string>();
  const segments = text === "/" ? [] : text.slice(1).split("/");
  return segments.map((segment) => {
    const field = /^\{([a-z][a-z0-9_]*)\}$/.exec(segment)?.[1];
    if (field === undefined && !/^[A-Za-z0-9._~-]+$/.test(segment)) {
      throw new Error(`Path template "${text}": segment "${segment}" is neither plain text nor {field}.`);
    }
    if (field !== undefined && seen.has(field)) {
      throw new Error(`Path template "${text}" names {${field}} twice.`);
    }
    seen.add(field ?? "");
    return field === undefined ? segment : undefined;
  });
}

/**
 * Splits a request path into segments and percent-decodes each once, so that `%2F` stays inside its segment. The root
 * path has no segments.
 *
 * @returns undefined if the percent-encoding is malformed or not UTF-8.
 */
export function splitPath(path: string): string[] | undefined {
  const segments = path === "/" ? [] : path.slice(1).split("/");
  try {
    return path.includes("%") ? segments.map(decodeURIComponent) : segments;
  } catch {
    return undefined;
  }
}
