/** The dialog for a key, and the corner that shows the signed-in key. */
import { at, button, h } from "./dom.js";
import { messageOf, ownerLink } from "./parts.js";
import type { Session } from "./session.js";

/**
 * Adds the dialog and the corner to the page.
 *
 * @param onChange called after the reader signed in or out.
 * @returns a function that opens the dialog.
 */
export function layOutSignIn(session: Session, onChange: () => void): () => void {
  const dialog = at("sign-in") as HTMLDialogElement;
  const [key, file] = [at("key") as HTMLTextAreaElement, at("key-file") as HTMLInputElement];

  const open = (): void => dialog.showModal();
  const showWho = (): void => {
    const { publicKey } = session;
    const out = button("Sign out", {}, () => {
      session.signOut();
      showWho();
      onChange();
      at("who").querySelector("button")!.focus();
    });
    at("who").replaceChildren(
      ...(publicKey === undefined
        ? [button("Sign in", {}, open)]
        : [h("span", {}, "Signed in: ", ownerLink(publicKey)), " ", out]),
    );
  };

  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void readKey(key, file).then((text) => {
      try {
        session.signIn(text);
      } catch (error) {
        at("key-trouble").textContent = messageOf(error);
        return;
      }
      dialog.close();
      showWho();
      onChange();
    });
  });
  at("key-cancel").addEventListener("click", () => dialog.close());
  // However it is closed, nothing of a key stays in the fields.
  dialog.addEventListener("close", () => {
    (at("key-form") as HTMLFormElement).reset();
    at("key-trouble").textContent = "";
  });
  showWho();
  return open;
}

async function readKey(key: HTMLTextAreaElement, file: HTMLInputElement): Promise<string> {
  return key.value.trim() === "" ? ((await file.files?.[0]?.text()) ?? "") : key.value;
}
