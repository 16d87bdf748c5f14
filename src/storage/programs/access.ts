/** Who may read a program. Pure: the same answer for the same rule and caller, whatever the route. */

/** Callers with permissions of their own. */
export interface AccessGroup {
  readonly members: readonly string[];
  readonly permissions: readonly ("read" | "write")[];
}

/** Who may read a program. Identities are 0x and 64 lower-case hex digits. */
export interface AccessRule {
  readonly owner: string;
  readonly mode: "public" | "owner" | "restricted";
  readonly allowed: readonly string[];
  readonly blacklisted: readonly string[];
  readonly groups: Readonly<Record<string, AccessGroup>>;
}

/** Whether the caller may read; `identity` is the key that the caller proved to hold, undefined when anonymous. */
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
 * Returns true if the caller must not learn that the program is there. Of one that is public everybody may know, also a
 * caller whom its rule keeps out.
 */
export function isHidden(rule: AccessRule, identity: string | undefined): boolean {
  return rule.mode !== "public" && !canRead(rule, identity);
}

function isReader({ members, permissions }: AccessGroup, identity: string): boolean {
  return permissions.includes("read") && members.includes(identity);
}

/** Whether the identity may change what the program holds: the owner, and members of a group with write. */
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
 * The rule as lists keep it: for each identity that the rule names, beside the owner, whether it is let in (true) or
 * kept out (false). What the mode says of identities that are not named comes on top.
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
