/** Describes who may read a program. */
import type { AccessRule } from "./answers.js";
import { h } from "./dom.js";
import { ownerLink } from "./parts.js";
import { visible } from "./words.js";

const modes: Readonly<Record<string, string>> = {
  public: "Everyone may read it.",
  owner: "Only its owner may read it.",
  restricted: "Its owner and the keys that the rule allows may read it.",
};

/** Returns a rule with all keys that it names. */
export function accessParts({ mode, allowed, blacklisted, groups }: AccessRule): HTMLElement {
  return h(
    "div",
    {},
    h("p", {}, modes[mode] ?? mode),
    ...keyList("Allowed to read", allowed),
    ...keyList("Never allowed", blacklisted),
    ...Object.entries(groups).flatMap(([name, { members, permissions }]) =>
      keyList(
        `Group ${visible(JSON.stringify(name))}, may ${permissions.join(" and ") || "do nothing"}`,
        members,
        "nobody",
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
