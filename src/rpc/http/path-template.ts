/**
 * Path templates of google.api.http, in the subset that the node's own routes use: literal segments, and `{field}` for
 * exactly one segment. Other templates are rejected at startup, so that none is matched incorrectly.
 */

/** Segment of a template: literal text, or the request field that the segment fills. */
export type Segment = { readonly literal: string } | { readonly field: string };

/** Parsed template. The root path has no segments. */
export interface PathTemplate {
  readonly text: string;
  readonly segments: readonly Segment[];
}

const fieldSegment = /^\{([a-z][a-z0-9_]*)\}$/;
const literalSegment = /^[A-Za-z0-9._~-]+$/;

/**
 * Parses a template such as `/storage-program/{storage_address}/field/{field}`.
 *
 * @throws Error that names the template and describes what is wrong.
 */
export function parsePathTemplate(text: string): PathTemplate {
  if (!text.startsWith("/")) {
    throw new Error(`Path template "${text}" must start with "/".`);
  }
  const seen = new Set<string>();
  const segments = text === "/" ? [] : text.slice(1).split("/").map(parseSegment);
  return { text, segments };

  function parseSegment(segment: string): Segment {
    const field = fieldSegment.exec(segment)?.[1];
    if (field !== undefined) {
      if (seen.has(field)) {
        throw new Error(`Path template "${text}" names {${field}} twice.`);
      }
      seen.add(field);
      return { field };
    }
    if (!literalSegment.test(segment)) {
      throw new Error(`Path template "${text}": segment "${segment}" is neither plain text nor {field}.`);
    }
    return { literal: segment };
  }
}

/** Returns the names of a template's fields, in order. Accepts the full grammar of google.api.http. */
export function pathFieldsOf(text: string): string[] {
  return [...text.matchAll(/\{([^{}=]+)/g)].map(([, name]) => name!);
}

/**
 * Splits a request path into segments and percent-decodes each once, so that `%2F` stays inside its segment. The root
 * path has no segments.
 *
 * @returns undefined if the percent-encoding is malformed or not UTF-8.
 */
export function splitPath(path: string): string[] | undefined {
  if (path === "/") {
    return [];
  }
  const segments = path.slice(1).split("/");
  if (!path.includes("%")) {
    return segments;
  }
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
