/** What a read of a program needs to find, and how it is refused where it does not. */
import { Failure } from "../rpc/errors.js";
import type { Call } from "../rpc/service.js";
import { type AccessRule, canRead } from "./access.js";
import type { Field, ProgramRecord } from "./programs.js";
import { noField, noFields, noProgram } from "./refusals.js";

/** A field that was asked for. Throws Failure FIELD_NOT_FOUND. */
export function needField<T extends Field>(field: T | undefined, name: string): T {
  if (field === undefined) {
    throw new Failure(...noField(name));
  }
  return field;
}

const notForYou = "This storage program is not readable for this identity.";
const howToSign =
  "This storage program is not readable for anonymous callers. An identity must be signed: send the headers identity, " +
  "timestamp (ms), network (the genesis hash) and signature, which is Ed25519 over the lower-case hex SHA-256 of " +
  "gatehouse-identity:<network>:<identity>:<timestamp>.";

/** What was found, where the caller may read it. Throws Failure NOT_FOUND, PERMISSION_DENIED. */
export function needReadable<T extends { readonly record: ProgramRecord }>(found: T | undefined, { caller }: Call): T {
  if (found === undefined) {
    throw new Failure(...noProgram);
  }
  checkReadable(found.record.access, caller.identity);
  return found;
}

/** Throws Failure PERMISSION_DENIED for a rule that does not let the caller read. */
export function checkReadable(rule: AccessRule, identity: string | undefined): void {
  if (!canRead(rule, identity)) {
    throw new Failure("PERMISSION_DENIED", identity === undefined ? howToSign : notForYou);
  }
}

/** Throws Failure INVALID_FIELD_TYPE for a program that is no object. */
export function needObject({ type }: ProgramRecord): void {
  if (type !== "object") {
    throw new Failure(...noFields(type));
  }
}
