/**
 * Checks messages against the limits on their fields in the `.proto` files (`gatehouse.annotations.v1.bounds`). The
 * checks are compiled once for each message type. Unknown fields are rejected too: an older node must not ignore a part
 * of a message from a newer node.
 */
import { type DescEnum, type DescField, type DescMessage, getOption, type MessageShape } from "@bufbuild/protobuf";
import { type Bounds, bounds as boundsOption } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";

/** Violation of a limit, with the path of field names that leads to it. */
interface Finding {
  readonly path: readonly string[];
  /** Predicate of an error message that starts with the field. */
  readonly problem: string;
}

type Check<T = unknown> = (value: T) => Finding | undefined;
type AnyMessage = Readonly<Record<string, unknown>> & { readonly $unknown?: readonly unknown[] };

/**
 * Compiles the checks of a message type. Compilation is deferred until the first message, so processes that check no
 * messages start faster.
 *
 * @param what name of the message in error messages.
 * @returns a function that returns an error message, or undefined if the message is valid. Example:
 * `The transaction's storage.set_field.field must have at most 256 bytes.`
 */
export function compileBounds<M extends DescMessage>(
  desc: M,
  what: string,
): (message: MessageShape<M>) => string | undefined {
  let check: Check | undefined;
  return (message) => {
    check ??= checkMessage(desc, new Map());
    const found = check(message);
    if (found === undefined) {
      return undefined;
    }
    const { path, problem } = found;
    return `The ${what}${path.length === 0 ? "" : `'s ${path.join(".")}`} ${problem}.`;
  };
}

function checkMessage(desc: DescMessage, known: Map<string, Check>): Check {
  const made = known.get(desc.typeName);
  if (made !== undefined) {
    return made;
  }
  let checks: readonly Check<AnyMessage>[] = [];
  const check: Check = (value) => {
    const message = value as AnyMessage;
    return (message.$unknown?.length ?? 0) > 0
      ? wrong("holds a field that this node does not know")
      : firstOf(checks, (one) => one(message));
  };
  // Registered before its fields are compiled, because message types may be recursive.
  known.set(desc.typeName, check);
  checks = desc.fields.map((field) => {
    const checkField = checkValues(field, getOption(field, boundsOption), known);
    return (message) => {
      const found = whenSet(field, message, checkField);
      return found && { ...found, path: [field.name, ...found.path] };
    };
  });
  return check;
}

function whenSet(field: DescField, message: AnyMessage, check: Check): Finding | undefined {
  if (field.oneof !== undefined) {
    const group = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
    return group.case === field.localName ? check(group.value) : undefined;
  }
  const value = message[field.localName];
  return value === undefined ? undefined : check(value);
}

function checkValues(field: DescField, bounds: Bounds, known: Map<string, Check>): Check {
  switch (field.fieldKind) {
    case "list": {
      const item = field.message === undefined ? checkScalar(field, bounds) : checkMessage(field.message, known);
      return (list) => checkCount((list as unknown[]).length, bounds) ?? firstOf(list as unknown[], item);
    }
    case "map": {
      const key = checkText(bounds);
      const item = field.message === undefined ? () => undefined : checkMessage(field.message, known);
      return (map) => {
        const entries = Object.entries(map as object);
        return checkCount(entries.length, bounds) ?? firstOf(entries, ([name, value]) => key(name) ?? item(value));
      };
    }
    case "message":
      return checkMessage(field.message, known);
    default:
      return checkScalar(field, bounds);
  }
}

/** Returns the check of a scalar or enum; for a list, the check of each item. */
function checkScalar({ enum: values }: DescField, bounds: Bounds): Check {
  if (values !== undefined) {
    return checkEnum(values);
  }
  const text = checkText(bounds);
  const size = checkSize(bounds);
  return (value) => {
    switch (typeof value) {
      case "string":
        return text(value);
      case "bigint":
      case "number":
        return checkNumber(value, bounds);
      default:
        return value instanceof Uint8Array ? size(value.length) : undefined;
    }
  };
}

function checkText(bounds: Bounds): Check<string> {
  const { pattern, form = "what the contract says" } = bounds;
  const expected = pattern === undefined ? undefined : new RegExp(`^(?:${pattern})$`, "u");
  const size = checkSize(bounds);
  return (text) =>
    size(Buffer.byteLength(text)) ?? (expected?.test(text) === false ? wrong(`must be ${form}`) : undefined);
}

function checkSize({ minBytes = 0, maxBytes = Infinity }: Bounds): Check<number> {
  const range = minBytes > 0 ? `${minBytes} to ${maxBytes}` : `at most ${maxBytes}`;
  return (bytes) => (bytes < minBytes || bytes > maxBytes ? wrong(`must have ${range} bytes`) : undefined);
}

function checkNumber(value: bigint | number, { max }: Bounds): Finding | undefined {
  return max !== undefined && (value < 0 || value > max) ? wrong(`must be a whole number from 0 to ${max}`) : undefined;
}

function checkEnum({ value, values }: DescEnum): Check {
  const words = values.map(({ name }) => name).join(", ");
  return (number) => (value[number as number] === undefined ? wrong(`must be one of ${words}`) : undefined);
}

function checkCount(count: number, { maxItems = Infinity }: Bounds): Finding | undefined {
  return count > maxItems ? wrong(`must have at most ${maxItems} items`) : undefined;
}

function firstOf<T>(values: readonly T[], check: Check<T>): Finding | undefined {
  for (const value of values) {
    const found = check(value);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

function wrong(problem: string): Finding {
  return { path: [], problem };
}
