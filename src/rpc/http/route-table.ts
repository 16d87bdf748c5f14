/**
 * Route table that finds the endpoints of a path, built once at startup. Paths without parameters are looked up
 * directly. Other paths are matched in a tree of segments, in which a literal always wins over a parameter, in any
 * order of declaration.
 */
import { RpcError } from "../errors.js";
import { parsePathTemplate, splitPath } from "./path-template.js";

/** Endpoints of a path, by HTTP method. */
export type Endpoints<T> = ReadonlyMap<string, T>;

/** Result of a route lookup. */
export interface RouteMatch<T> {
  readonly endpoints: Endpoints<T>;
  /** Decoded values of the template's fields, in the template's order. */
  readonly parameters: readonly string[];
}

interface Declared<T> {
  readonly endpoint: T;
  readonly owner: string;
  readonly template: string;
}

interface TreeNode<T> {
  readonly literals: Map<string, TreeNode<T>>;
  parameter: TreeNode<T> | undefined;
  readonly declared: Map<string, Declared<T>>;
  readonly endpoints: Map<string, T>;
}

const noParameters: readonly string[] = [];

export interface RouteTable<T> {
  /**
   * Declares an endpoint; `owner` names the endpoint in errors.
   *
   * @throws Error that names both owners if another endpoint has the same method and path shape.
   */
  add(httpMethod: string, template: string, owner: string, endpoint: T): void;
  /**
   * Finds a path (without query). Tolerates one trailing slash.
   *
   * @throws RpcError INVALID_REQUEST if the percent-encoding is malformed.
   */
  find(path: string): RouteMatch<T> | undefined;
}

export function createRouteTable<T>(): RouteTable<T> {
  const root = createNode<T>();
  const exact = new Map<string, RouteMatch<T>>();

  function add(httpMethod: string, template: string, owner: string, endpoint: T): void {
    const { segments } = parsePathTemplate(template);
    let node = root;
    for (const segment of segments) {
      if ("literal" in segment) {
        let next = node.literals.get(segment.literal);
        if (next === undefined) {
          next = createNode();
          node.literals.set(segment.literal, next);
        }
        node = next;
      } else {
        node = node.parameter ??= createNode();
      }
    }
    const other = node.declared.get(httpMethod);
    if (other !== undefined) {
      throw new Error(
        `${httpMethod} ${template} of ${owner} is ambiguous: ${httpMethod} ${other.template} of ${other.owner} matches the same paths.`,
      );
    }
    node.declared.set(httpMethod, { endpoint, owner, template });
    node.endpoints.set(httpMethod, endpoint);
    if (segments.every((segment) => "literal" in segment)) {
      exact.set(template, { endpoints: node.endpoints, parameters: noParameters });
    }
  }

  function find(path: string): RouteMatch<T> | undefined {
    return exact.get(path) ?? findBySegments(path);
  }

  function findBySegments(path: string): RouteMatch<T> | undefined {
    const segments = splitPath(path);
    if (segments === undefined) {
      throw new RpcError("INVALID_REQUEST", "The path has a malformed percent-encoding.");
    }
    if (segments.length > 1 && segments[segments.length - 1] === "") {
      // Drop the trailing slash if the path matches without it. Otherwise the path ends in an empty parameter.
      const trimmed = visit(root, segments.slice(0, -1), 0, []);
      if (trimmed !== undefined) {
        return trimmed;
      }
    }
    return visit(root, segments, 0, []);
  }

  return { add, find };
}

function createNode<T>(): TreeNode<T> {
  return { literals: new Map(), parameter: undefined, declared: new Map(), endpoints: new Map() };
}

function visit<T>(
  node: TreeNode<T>,
  segments: readonly string[],
  depth: number,
  parameters: readonly string[],
): RouteMatch<T> | undefined {
  const segment = segments[depth];
  if (segment === undefined) {
    return node.endpoints.size > 0 ? { endpoints: node.endpoints, parameters } : undefined;
  }
  const literal = node.literals.get(segment);
  const byLiteral = literal && visit(literal, segments, depth + 1, parameters);
  if (byLiteral !== undefined || node.parameter === undefined) {
    return byLiteral;
  }
  return visit(node.parameter, segments, depth + 1, [...parameters, segment]);
}
