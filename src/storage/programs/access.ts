/** Access rules of programs. The decision depends only on the rule and the caller, never on the API method. */
import { type AccessControl, AccessMode, AccessPermission } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { RpcError } from "../../rpc/errors.js";

export interface AccessGroup {
  readonly members: readonly string[];
  readonly permissions: readonly ("read" | "write")[];
}

/** Access rule of a program. Identities are 0x and 64 lowercase hex digits. */
export interface AccessRule {
  readonly owner: string;
  readonly mode: "public" | "owner" | "restricted";
  readonly allowed: readonly string[];
  readonly blacklisted: readonly string[];
  readonly groups: Readonly<Record<string, AccessGroup>>;
}

/** Decides for the key that the caller proved to hold; undefined for anonymous callers. */
export function canRead(rule: AccessRule, identity: string | undefined): boolean {
  if (identity === undefined) {
    return rule.mode === "public";
  }
  if (identity === rule.owner) {
    return true;
  }
  if (rule.blacklisted.includes(identity)) {
    return false;
  }
  switch (rule.mode) {
    case "public":
      return true;
    case "owner":
      return false;
    case "restricted":
      return rule.allowed.includes(identity) || Object.values(rule.groups).some((group) => isReader(group, identity));
  }
}

/**
 * Returns true if the program must appear nonexistent to the caller. Public programs are visible to every caller,
 * including callers that the rule excludes from reading.
 */
export function isHidden(rule: AccessRule, identity: string | undefined): boolean {
  return rule.mode !== "public" && !canRead(rule, identity);
}

function isReader({ members, permissions }: AccessGroup, identity: string): boolean {
  return permissions.includes("read") && members.includes(identity);
}

/**
 * Returns true if the identity may change the document: the owner, or a member of a group with write permission. In
 * mode `owner`, only the owner may. Blacklisted identities may not.
 */
export function canWrite(rule: AccessRule, identity: string): boolean {
  if (identity === rule.owner) {
    return true;
  }
  return (
    rule.mode !== "owner" &&
    !rule.blacklisted.includes(identity) &&
    Object.values(rule.groups).some(
      ({ members, permissions }) => permissions.includes("write") && members.includes(identity),
    )
  );
}

/**
 * Returns the identities that the rule names, other than the owner, as lists store them: true if allowed to read, false
 * if excluded. The mode decides for all other identities.
 */
export function namedReaders({ allowed, blacklisted, groups }: AccessRule): ReadonlyMap<string, boolean> {
  const readers = Object.values(groups)
    .filter(({ permissions }) => permissions.includes("read"))
    .flatMap(({ members }) => members);
  return new Map([
    ...[...allowed, ...readers].map((identity) => [identity, true] as const),
    ...blacklisted.map((identity) => [identity, false] as const),
  ]);
}

/** Limit on the keys of an access rule, summed over all of its lists. */
const maxKeys = 1_000;

const modes = {
  public: AccessMode.PUBLIC,
  owner: AccessMode.OWNER,
  restricted: AccessMode.RESTRICTED,
} as const;

const permissions = { read: AccessPermission.READ, write: AccessPermission.WRITE } as const;

/** Returns the name of an enum value; undefined if the value has no name. */
function nameOf<Name extends string>(values: Readonly<Record<Name, number>>, value: number): Name | undefined {
  return (Object.keys(values) as Name[]).find((name) => values[name] === value);
}

/** @throws RpcError INVALID_REQUEST if a rule within the limits of the proto contract is invalid. */
export function checkAccessControl(rule: AccessControl | undefined): void {
  if (rule === undefined) {
    return;
  }
  if (nameOf(modes, rule.mode) === undefined) {
    throw new RpcError("INVALID_REQUEST", "The access mode must be public, owner or restricted.");
  }
  // Decoding a group named `__proto__` sets the prototype of the map, so the group would be missing from every list.
  if (Object.getPrototypeOf(rule.groups) !== Object.prototype) {
    throw new RpcError("INVALID_REQUEST", "A group of an access rule must not be named __proto__.");
  }
  const lists = [rule.allowed, rule.blacklisted, ...Object.values(rule.groups).map(({ members }) => members)];
  if (lists.reduce((sum, list) => sum + list.length, 0) > maxKeys) {
    throw new RpcError("INVALID_REQUEST", `An access rule must have at most ${maxKeys} keys in total.`);
  }
}

/** Reads a rule that passed the check. Without a rule, only the owner may read. */
export function readAccessControl(owner: string, rule: AccessControl | undefined): AccessRule {
  if (rule === undefined) {
    return { owner, mode: "owner", allowed: [], blacklisted: [], groups: {} };
  }
  return {
    owner,
    mode: nameOf(modes, rule.mode)!,
    allowed: rule.allowed,
    blacklisted: rule.blacklisted,
    groups: Object.fromEntries(
      Object.entries(rule.groups).map(([name, group]) => [
        name,
        { members: group.members, permissions: group.permissions.flatMap((value) => nameOf(permissions, value) ?? []) },
      ]),
    ),
  };
}

export function toAccessControl({ mode, allowed, blacklisted, groups }: AccessRule) {
  return {
    mode: modes[mode],
    allowed,
    blacklisted,
    groups: Object.fromEntries(
      Object.entries(groups).map(([name, group]) => [
        name,
        { members: group.members, permissions: group.permissions.map((permission) => permissions[permission]) },
      ]),
    ),
  };
}
