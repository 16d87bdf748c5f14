/** Buttons that copy hashes, keys and commands to the clipboard. */
import { button, h, setText } from "./dom.js";
import { short } from "./format.js";

/** Time in milliseconds for which a button is marked as copied. */
const markedMs = 1_500;

/**
 * Returns an element followed by a button that copies a text.
 *
 * @param name of the text in the label of the button.
 */
export function copyable(element: HTMLElement, text: string, name = short(text)): HTMLElement {
  const label = `Copy ${name}`;
  const press = button("", { class: "copy", "aria-label": label, title: label }, async () => {
    const isCopied = await copyText(text);
    press.classList.toggle("copied", isCopied);
    setText(liveRegion(), isCopied ? `Copied ${name}` : "The browser did not allow copying.");
    setTimeout(() => press.classList.remove("copied"), markedMs);
  });
  return h("span", { class: "copyable" }, element, press);
}

/** Returns true if the text was copied. Pages over plain HTTP have no clipboard API, and copy a selection instead. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = h("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    // oxlint-disable-next-line typescript/no-deprecated -- the only way on a page over plain HTTP
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

let region: HTMLElement | undefined;

/** Returns the hidden element whose changes screen readers announce. */
function liveRegion(): HTMLElement {
  if (region === undefined) {
    region = h("div", { class: "unseen", role: "status" });
    document.body.append(region);
  }
  return region;
}
