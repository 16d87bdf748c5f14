/** Copies hashes, keys and commands with one click. */
import { button, h, say } from "./dom.js";
import { short } from "./words.js";

/** Time in milliseconds for which a button says that it copied. */
const shownMs = 1_500;

/** Returns an element with a button that copies the text. */
export function copyable(shown: HTMLElement, text: string, name = short(text)): HTMLElement {
  const label = `Copy ${name}`;
  const press = button("", { class: "copy", "aria-label": label, title: label }, async () => {
    const isCopied = await copyText(text);
    press.classList.toggle("copied", isCopied);
    say(announcer(), isCopied ? `Copied ${name}` : "The browser did not allow copying.");
    setTimeout(() => press.classList.remove("copied"), shownMs);
  });
  return h("span", { class: "copyable" }, shown, press);
}

/** Returns true if the text was copied. Pages without a secure context have no clipboard, and copy a selection. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = h("textarea", { class: "spoken", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    // oxlint-disable-next-line typescript/no-deprecated -- the only way on a page over plain HTTP
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

let live: HTMLElement | undefined;

function announcer(): HTMLElement {
  if (live === undefined) {
    live = h("div", { class: "spoken", role: "status" });
    document.body.append(live);
  }
  return live;
}
