/** Converts access rules from and to their Protobuf messages. */
import { type AccessControl, AccessMode, AccessPermission } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { RpcError } from "../../rpc/errors.js";
import type { AccessRule } from "./access.js";

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

/**
 * Checks an access rule that already meets the limits of the proto contract.
 *
 * @throws RpcError INVALID_REQUEST
 */
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

/** Converts a rule to its Protobuf form. */
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
