/** The part of the header that shows the signed-in key. */
import { copyable } from "../copy.js";
import { button, byId, h } from "../dom.js";
import { short } from "../format.js";
import { linkTo } from "../routes.js";
import type { Session } from "../session.js";

/**
 * Shows the signed-in key with a button that signs out, and updates them while the page is open.
 *
 * @param signIn returns the element for a reader who is signed out.
 */
export function showReader(session: Session, signIn: () => HTMLElement): void {
  const place = byId("who");
  const signOut = (): void => {
    session.signOut();
    place.querySelector<HTMLElement>("button, a")!.focus();
  };
  const show = (): void => {
    const { publicKey } = session;
    place.replaceChildren(
      ...(publicKey === undefined
        ? [signIn()]
        : [h("span", {}, "Signed in: ", keyLink(publicKey)), " ", button("Sign out", {}, signOut)]),
    );
  };
  session.onChange(show);
  show();
}

/** Returns the link to an owner, which works on all pages. */
function keyLink(name: string): HTMLElement {
  const href = `explore${linkTo({ kind: "owner", name })}`;
  return copyable(h("a", { href, title: name }, h("code", {}, short(name))), name);
}
