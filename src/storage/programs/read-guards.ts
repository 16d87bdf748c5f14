/** What a read of a program needs to find, and how it is refused where it does not. */
import { RpcError } from "../../rpc/errors.js";
import type { Call } from "../../rpc/service.js";
import { type AccessRule, canRead, isHidden } from "./access.js";
import type { Field, ProgramRecord } from "./programs.js";
import { noField, noFields } from "./refusals.js";

/** A field that was asked for. Throws Failure FIELD_NOT_FOUND. */
export function requireField<T extends Field>(field: T | undefined, name: string): T {
  if (field === undefined) {
    throw new RpcError(...noField(name));
  }
  return field;
}

const notForYou = "This storage program is not readable for this identity.";
const howToSign =
  "An identity must be signed: send the headers identity, timestamp (ms), network (the genesis hash) and signature, which is " +
  "Ed25519 over the lower-case hex SHA-256 of gatehouse-identity:<network>:<identity>:<timestamp>.";

/**
 * Returns the program, where the caller may read it. One that he may not read is not there for him, so that names cannot be
 * guessed; a caller whom a public program keeps out is told so, as everybody else can see it.
 *
 * @throws Failure NOT_FOUND, PERMISSION_DENIED
 */
export function requireReadable<T extends { readonly record: ProgramRecord }>(
  found: T | undefined,
  { caller }: Call,
): T {
  const { identity } = caller;
  if (found === undefined || isHidden(found.record.access, identity)) {
    throw new RpcError("NOT_FOUND", noneFor(identity));
  }
  checkReadable(found.record.access, identity);
  return found;
}

function noneFor(identity: string | undefined): string {
  return identity === undefined
    ? `There is no storage program at this address that anonymous callers may read. ${howToSign}`
    : "There is no storage program at this address that this identity may read.";
}

/** Throws Failure PERMISSION_DENIED for a rule that does not let the caller read a program that is known to be there. */
export function checkReadable(rule: AccessRule, identity: string | undefined): void {
  if (!canRead(rule, identity)) {
    const message = `This storage program is not readable for anonymous callers. ${howToSign}`;
    throw new RpcError("PERMISSION_DENIED", identity === undefined ? message : notForYou);
  }
}

/** Throws Failure INVALID_FIELD_TYPE for a program that is no object. */
export function requireObject({ type }: ProgramRecord): void {
  if (type !== "object") {
    throw new RpcError(...noFields(type));
  }
}
