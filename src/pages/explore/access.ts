/** Describes the access rule of a program. */
import type { AccessRule } from "./responses.js";
import { h } from "./dom.js";
import { ownerLink, tag } from "./parts.js";
import { escapeInvisible } from "./format.js";

const modes: Readonly<Record<string, string>> = {
  public: "Everyone may read it.",
  owner: "Only its owner may read it.",
  restricted: "Its owner and the keys that the rule allows may read it.",
};

/** Names of the modes on badges. */
const badges: Readonly<Record<string, string>> = { owner: "private" };

/** Returns the badge of a program: `public`, `restricted` or `private`. */
export function accessBadge({ mode }: AccessRule): HTMLElement {
  return tag(badges[mode] ?? mode, mode === "public" ? undefined : "private");
}

/** Returns a description of a rule, with lists of the keys that it allows or excludes. */
export function accessParts({ mode, allowed, blacklisted, groups }: AccessRule): HTMLElement {
  return h(
    "div",
    {},
    h("p", {}, modes[mode] ?? mode),
    ...keyList("Allowed to read", allowed),
    ...keyList("Never allowed", blacklisted),
    ...Object.entries(groups).flatMap(([name, { members, permissions }]) =>
      keyList(
        `Group ${escapeInvisible(JSON.stringify(name))}, may ${permissions.join(" and ") || "do nothing"}`,
        members,
        "no keys",
      ),
    ),
  );
}

function keyList(title: string, keys: readonly string[], none?: string): HTMLElement[] {
  if (keys.length === 0) {
    return none === undefined ? [] : [h("p", {}, `${title}: ${none}.`)];
  }
  return [h("p", {}, `${title}:`), h("ul", { class: "keys" }, ...keys.map((key) => h("li", {}, ownerLink(key))))];
}
