/** Access rules of programs. The decision depends only on the rule and the caller, never on the API method. */

/** Group of callers with the same permissions. */
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

/**
 * Returns true if the caller may read the program.
 *
 * @param identity the key that the caller proved to hold; undefined for anonymous callers.
 */
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
