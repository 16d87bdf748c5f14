/** Checks reads of programs, and rejects reads of programs and fields that are missing or not readable. */
import { RpcError } from "../../rpc/errors.js";
import type { Call } from "../../rpc/service.js";
import { type AccessRule, canRead, isHidden } from "./access.js";
import type { Field, ProgramRecord } from "./programs.js";
import { fieldNotFound, notAnObject } from "./rejections.js";

/** @throws RpcError FIELD_NOT_FOUND */
export function requireField<T extends Field>(field: T | undefined, name: string): T {
  if (field === undefined) {
    throw new RpcError(...fieldNotFound(name));
  }
  return field;
}

const notReadable = "This storage program is not readable for this identity.";
const howToSign =
  "An identity must be signed: send the headers identity, timestamp (ms), network (the genesis hash) and signature, which is " +
  "Ed25519 over the lower-case hex SHA-256 of gatehouse-identity:<network>:<identity>:<timestamp>.";

/**
 * Returns the program if the caller may read it. A hidden program is reported as missing, so that callers cannot probe
 * for names. A caller excluded from a public program gets PERMISSION_DENIED, since its existence is public.
 *
 * @throws RpcError NOT_FOUND, PERMISSION_DENIED
 */
export function requireReadable<T extends { readonly record: ProgramRecord }>(
  found: T | undefined,
  { caller }: Call,
): T {
  const { identity } = caller;
  if (found === undefined || isHidden(found.record.access, identity)) {
    throw new RpcError("NOT_FOUND", notFoundMessage(identity));
  }
  checkReadable(found.record.access, identity);
  return found;
}

function notFoundMessage(identity: string | undefined): string {
  return identity === undefined
    ? `There is no storage program at this address that anonymous callers may read. ${howToSign}`
    : "There is no storage program at this address that this identity may read.";
}

/** @throws RpcError PERMISSION_DENIED if the caller, who may know of the program, may not read it. */
export function checkReadable(rule: AccessRule, identity: string | undefined): void {
  if (!canRead(rule, identity)) {
    const message = `This storage program is not readable for anonymous callers. ${howToSign}`;
    throw new RpcError("PERMISSION_DENIED", identity === undefined ? message : notReadable);
  }
}

/** @throws RpcError INVALID_FIELD_TYPE if the document is not an object. */
export function requireObject({ type }: ProgramRecord): void {
  if (type !== "object") {
    throw new RpcError(...notAnObject(type));
  }
}
