/** The sign-in dialog, and its button in the header. */
import { button, byId } from "../dom.js";
import { messageOf } from "../parts.js";
import type { Session } from "../session.js";
import { showReader } from "./reader.js";

/**
 * Sets up the dialog and the sign-in part of the header.
 *
 * @returns a function that opens the dialog.
 */
export function setUpSignIn(session: Session): () => void {
  const dialog = byId("sign-in") as HTMLDialogElement;
  const [key, file] = [byId("key") as HTMLTextAreaElement, byId("key-file") as HTMLInputElement];

  const open = (): void => dialog.showModal();

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
  showReader(session, () => button("Sign in", {}, open));
  return open;
}

/** Returns the key in the text field, or the content of the chosen file if the text field is empty. */
async function readKey(key: HTMLTextAreaElement, file: HTMLInputElement): Promise<string> {
  return key.value.trim() === "" ? ((await file.files?.[0]?.text()) ?? "") : key.value;
}
