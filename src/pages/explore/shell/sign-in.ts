/** The sign-in dialog, and the part of the header that shows the signed-in key. */
import { button, byId, h } from "../dom.js";
import { messageOf, ownerLink } from "../parts.js";
import type { Session } from "../session.js";

/**
 * Sets up the dialog and the sign-in part of the header.
 *
 * @returns a function that opens the dialog.
 */
export function setUpSignIn(session: Session): () => void {
  const dialog = byId("sign-in") as HTMLDialogElement;
  const [key, file] = [byId("key") as HTMLTextAreaElement, byId("key-file") as HTMLInputElement];

  const open = (): void => dialog.showModal();
  const showIdentity = (): void => {
    const { publicKey } = session;
    const signOut = button("Sign out", {}, () => {
      session.signOut();
      byId("who").querySelector("button")!.focus();
    });
    byId("who").replaceChildren(
      ...(publicKey === undefined
        ? [button("Sign in", {}, open)]
        : [h("span", {}, "Signed in: ", ownerLink(publicKey)), " ", signOut]),
    );
  };

  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void readKey(key, file).then((text) => {
      try {
        session.signIn(text);
      } catch (error) {
        byId("key-trouble").textContent = messageOf(error);
        return;
      }
      dialog.close();
    });
  });
  byId("key-cancel").addEventListener("click", () => dialog.close());
  // The dialog can be closed in several ways; each must clear the key from the fields.
  dialog.addEventListener("close", () => {
    (byId("key-form") as HTMLFormElement).reset();
    byId("key-trouble").textContent = "";
  });
  session.onChange(showIdentity);
  showIdentity();
  return open;
}

/** Returns the key in the text field, or the content of the chosen file if the text field is empty. */
async function readKey(key: HTMLTextAreaElement, file: HTMLInputElement): Promise<string> {
  return key.value.trim() === "" ? ((await file.files?.[0]?.text()) ?? "") : key.value;
}
