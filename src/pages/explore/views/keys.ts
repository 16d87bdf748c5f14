/** Shows the keys that this browser stores, and makes or imports one. */
import { bytesToHex } from "../../../../client/src/bytes.js";
import { seedFromPem } from "../../../../client/src/keys.js";
import { button, h, setText } from "../dom.js";
import { short } from "../format.js";
import { messageOf, note, ownerLink, section } from "../parts.js";
import type { Session } from "../session.js";
import { saveFile } from "../table/csv.js";
import type { ViewContext, View } from "../view.js";
import { decryptPem, encryptedPem, isEncryptedPem, plainPem } from "../write/key-file.js";
import {
  deleteKey,
  insecureText,
  isSecure,
  listKeys,
  minPassphraseLength,
  type StoredKey,
  storeKey,
  unlockKey,
} from "../write/key-store.js";

export function viewKeys({ node: { session }, signIn }: ViewContext): Promise<View> {
  const keys = listKeys();
  return Promise.resolve({
    title: "Keys",
    contents: [
      ...(session.publicKey === undefined
        ? [h("p", { class: "buttons" }, button("Sign in with a key that is not stored", {}, signIn))]
        : []),
      ...storageContents(session, keys),
    ],
  });
}

function storageContents(session: Session, keys: readonly StoredKey[]): HTMLElement[] {
  return isSecure()
    ? [
        note(
          "Keys are stored in this browser only, encrypted with a passphrase that cannot be recovered. The page that uses them comes from this node: use only nodes that you trust.",
        ),
        section(
          "Stored keys",
          keys.length === 0
            ? note("No keys are stored.")
            : h("ul", { class: "fields" }, ...keys.map((key) => storedKey(session, key))),
        ),
        section("Create a key", newKeyForm(session)),
        section("Import a key", importForm(session)),
      ]
    : [h("p", { class: "bad" }, insecureText)];
}

function storedKey(session: Session, key: StoredKey): HTMLElement {
  const { publicKey } = key;
  const isUnlocked = session.signer?.publicKey === publicKey;
  const remove = button("Delete", { "aria-label": `Delete ${short(publicKey)}` }, () => {
    remove.replaceWith(
      button("Delete permanently", {}, () => {
        deleteKey(publicKey);
        item.remove();
      }),
    );
  });
  const item = h(
    "li",
    {},
    h("p", {}, ownerLink(publicKey), " ", isUnlocked ? "is unlocked. " : "", remove),
    isUnlocked ? undefined : unlockForm(session, key),
  );
  return item;
}

/** Returns the form that signs in with a stored key. */
export function unlockForm(session: Session, key: StoredKey): HTMLElement {
  return passphraseForm({
    label: "Unlock",
    fields: [],
    submit: async (passphrase) => session.signIn(await unlockKey(key, passphrase)),
  });
}

function newKeyForm(session: Session): HTMLElement {
  const backup = h(
    "select",
    {},
    h("option", { value: "encrypted" }, "Encrypted with the passphrase"),
    h("option", { value: "plain" }, "Not encrypted: whoever has the file has the key"),
  );
  const form = passphraseForm({
    label: "Create a key",
    fields: [h("label", {}, "Backup, which the browser downloads as a file ", backup)],
    isNew: true,
    async submit(passphrase) {
      const seed = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
      const isEncrypted = backup.value === "encrypted";
      const { publicKey } = await storeKey(seed, passphrase);
      const text = isEncrypted ? await encryptedPem(seed, passphrase) : plainPem(seed);
      saveFile(`${publicKey.slice(0, 18)}.key`, "application/x-pem-file", text);
      session.signIn(seed);
    },
  });
  return h(
    "div",
    {},
    note("The command line reads both forms of the backup. Without a backup, a lost browser is a lost key."),
    form,
  );
}

function importForm(session: Session): HTMLElement {
  const text = h("textarea", {
    rows: 3,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    class: "secret",
  });
  return passphraseForm({
    label: "Import",
    fields: [
      h(
        "label",
        {},
        "Private key: 64 hex digits, or the text of a PEM file. An encrypted one needs its own passphrase below. ",
        text,
      ),
    ],
    isNew: true,
    async submit(passphrase) {
      const entered = text.value.trim();
      const seed = isEncryptedPem(entered)
        ? await decryptPem(entered, passphrase)
        : entered.includes("-----")
          ? seedFromPem(entered)
          : entered.replace(/^0x/, "").toLowerCase();
      if (!/^[0-9a-f]{64}$/.test(seed)) {
        throw new TypeError("A private key is 64 hex digits, or the text of a PEM file.");
      }
      await storeKey(seed, passphrase);
      text.value = "";
      session.signIn(seed);
    },
  });
}

interface PassphraseForm {
  /** Text of the button. */
  readonly label: string;
  readonly fields: readonly HTMLElement[];
  /** True for a passphrase that is chosen now, and entered twice. */
  readonly isNew?: boolean;
  readonly submit: (passphrase: string) => Promise<void>;
}

function passphraseForm({ label, fields, isNew = false, submit }: PassphraseForm): HTMLElement {
  const autocomplete = isNew ? "new-password" : "current-password";
  const passphrase = h("input", { type: "password", autocomplete, required: true });
  const again = h("input", { type: "password", autocomplete, required: true });
  const press = h("button", {}, label);
  const state = h("p", { role: "status" });
  const form = h(
    "form",
    { class: "write" },
    ...fields,
    h("label", {}, isNew ? `Passphrase, at least ${minPassphraseLength} characters ` : "Passphrase ", passphrase),
    ...(isNew ? [h("label", {}, "The same passphrase again ", again)] : []),
    press,
    state,
  );
  const run = async (): Promise<void> => {
    if (isNew && passphrase.value !== again.value) {
      throw new TypeError("The two passphrases differ.");
    }
    setText(state, "Working…");
    await submit(passphrase.value);
    form.reset();
    setText(state, "");
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    press.disabled = true;
    void run()
      .catch((error: unknown) => setText(state, messageOf(error)))
      .finally(() => (press.disabled = false));
  });
  return form;
}
