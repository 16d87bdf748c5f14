/** Access rules, as they travel. */
import { z } from "zod";
import { type AccessControl, AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { hex32 } from "../base/hash.js";
import { Failure } from "../rpc/errors.js";
import type { AccessRule } from "./access.js";

const maxIdentities = 1_000;
const maxGroups = 64;

const identities = z.array(z.string().regex(hex32)).max(maxIdentities);

const modes = {
  public: AccessMode.PUBLIC,
  owner: AccessMode.OWNER,
  restricted: AccessMode.RESTRICTED,
} as const;

const permissions = { read: AccessPermission.READ, write: AccessPermission.WRITE } as const;

/** The word of an enum's value; undefined for one that has none. */
function wordOf<Word extends string>(values: Readonly<Record<Word, number>>, value: number): Word | undefined {
  return (Object.keys(values) as Word[]).find((word) => values[word] === value);
}

/**
 * Reads a rule; where none is given, the owner alone may read.
 *
 * @throws Failure INVALID_REQUEST
 */
export function readAccessControl(owner: string, given: AccessControl | undefined): AccessRule {
  if (given === undefined) {
    return { owner, mode: "owner", allowed: [], blacklisted: [], groups: {} };
  }
  const mode = wordOf(modes, given.mode);
  if (mode === undefined) {
    throw new Failure("INVALID_REQUEST", "The access mode must be public, owner or restricted.");
  }
  const groups = Object.entries(given.groups);
  const lists = [given.allowed, given.blacklisted, ...groups.map(([, { members }]) => members)];
  if (groups.length > maxGroups || lists.some((list) => !identities.safeParse(list).success)) {
    throw new Failure(
      "INVALID_REQUEST",
      `Access names at most ${maxIdentities} keys in a list, each 0x and 64 lower-case hex digits, and ${maxGroups} groups.`,
    );
  }
  return {
    owner,
    mode,
    allowed: given.allowed,
    blacklisted: given.blacklisted,
    groups: Object.fromEntries(
      groups.map(([name, group]) => [
        name,
        { members: group.members, permissions: group.permissions.flatMap((value) => wordOf(permissions, value) ?? []) },
      ]),
    ),
  };
}

/** Writes a rule. */
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
