/**
 * Checks messages against the limits on their fields in the `.proto` files (`gatehouse.annotations.v1.bounds`). The
 * checks are compiled once for each message type. Unknown fields are rejected too: an older node must not ignore a part
 * of a message from a newer node.
 */
import { type DescEnum, type DescField, type DescMessage, getOption, type MessageShape } from "@bufbuild/protobuf";
import { type Bounds, bounds as boundsOption } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { RpcError } from "../../rpc/errors.js";

/** Violation of a limit. */
interface Violation {
  /** Field names from the message to the invalid field; empty for the message itself. */
  readonly path: readonly string[];
  /** Predicate of an error message that starts with the field. */
  readonly problem: string;
}

type Check<T = unknown> = (value: T) => Violation | undefined;
type AnyMessage = Readonly<Record<string, unknown>> & { readonly $unknown?: readonly unknown[] };

/**
 * Compiles the checks of a message type. Compilation is deferred until the first message, so processes that check no
 * messages start faster.
 *
 * @param what name of the message in error messages.
 * @returns a function that throws RpcError INVALID_REQUEST for an invalid message. Example:
 * `The transaction's storage.set_field.field must have at most 256 bytes.`
 */
export function compileBounds<M extends DescMessage>(desc: M, what: string): (message: MessageShape<M>) => void {
  let check: Check | undefined;
  return (message) => {
    check ??= checkMessage(desc, new Map());
    const violation = check(message);
    if (violation !== undefined) {
      const { path, problem } = violation;
      const field = path.length === 0 ? "" : `'s ${path.join(".")}`;
      throw new RpcError("INVALID_REQUEST", `The ${what}${field} ${problem}.`);
    }
  };
}

/**
 * Compiles the check of a message type.
 *
 * @param compiled checks of the types that were compiled before, by name.
 */
function checkMessage(desc: DescMessage, compiled: Map<string, Check>): Check {
  const existing = compiled.get(desc.typeName);
  if (existing !== undefined) {
    return existing;
  }
  let checks: readonly Check<AnyMessage>[] = [];
  const check: Check = (value) => {
    const message = value as AnyMessage;
    return (message.$unknown?.length ?? 0) > 0
      ? createViolation("holds a field that this node does not know")
      : firstViolation(checks, (checkField) => checkField(message));
  };
  // Registered before its fields are compiled, because message types may be recursive.
  compiled.set(desc.typeName, check);
  checks = desc.fields.map((field) => {
    const checkField = checkValues(field, getOption(field, boundsOption), compiled);
    return (message) => {
      const violation = checkIfSet(field, message, checkField);
      return violation && { ...violation, path: [field.name, ...violation.path] };
    };
  });
  return check;
}

/** Runs the check if the message has the field. */
function checkIfSet(field: DescField, message: AnyMessage, check: Check): Violation | undefined {
  if (field.oneof !== undefined) {
    const group = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
    return group.case === field.localName ? check(group.value) : undefined;
  }
  const value = message[field.localName];
  return value === undefined ? undefined : check(value);
}

/** Compiles the check of a field: of all items of a list or map, or of the single value. */
function checkValues(field: DescField, bounds: Bounds, compiled: Map<string, Check>): Check {
  switch (field.fieldKind) {
    case "list": {
      const item = field.message === undefined ? checkScalar(field, bounds) : checkMessage(field.message, compiled);
      return (list) => checkCount((list as unknown[]).length, bounds) ?? firstViolation(list as unknown[], item);
    }
    case "map": {
      const key = checkText(bounds);
      const item = field.message === undefined ? () => undefined : checkMessage(field.message, compiled);
      return (map) => {
        const entries = Object.entries(map as object);
        const checkEntry = ([name, value]: [string, unknown]) => key(name) ?? item(value);
        return checkCount(entries.length, bounds) ?? firstViolation(entries, checkEntry);
      };
    }
    case "message":
      return checkMessage(field.message, compiled);
    default:
      return checkScalar(field, bounds);
  }
}

/** Compiles the check of a scalar or enum value. */
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
    size(Buffer.byteLength(text)) ?? (expected?.test(text) === false ? createViolation(`must be ${form}`) : undefined);
}

function checkSize({ minBytes = 0, maxBytes = Infinity }: Bounds): Check<number> {
  const range = minBytes > 0 ? `${minBytes} to ${maxBytes}` : `at most ${maxBytes}`;
  return (bytes) => (bytes < minBytes || bytes > maxBytes ? createViolation(`must have ${range} bytes`) : undefined);
}

function checkNumber(value: bigint | number, { max }: Bounds): Violation | undefined {
  const isOutside = max !== undefined && (value < 0 || value > max);
  return isOutside ? createViolation(`must be a whole number from 0 to ${max}`) : undefined;
}

function checkEnum({ value, values }: DescEnum): Check {
  const names = values.map(({ name }) => name).join(", ");
  return (number) => (value[number as number] === undefined ? createViolation(`must be one of ${names}`) : undefined);
}

function checkCount(count: number, { maxItems = Infinity }: Bounds): Violation | undefined {
  return count > maxItems ? createViolation(`must have at most ${maxItems} items`) : undefined;
}

function firstViolation<T>(values: readonly T[], check: Check<T>): Violation | undefined {
  for (const value of values) {
    const violation = check(value);
    if (violation !== undefined) {
      return violation;
    }
  }
  return undefined;
}

function createViolation(problem: string): Violation {
  return { path: [], problem };
}
