/** Elements. Whatever comes from a node becomes text, and never markup. */

/** What stands in an element. */
export type Content = Node | string | number | undefined;

/** Attributes by name; one that is undefined or false is left out, true is there without a value. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** An element with its attributes and what stands in it. */
export function h<K extends keyof HTMLElementTagNameMap>(
  kind: K,
  attributes: Attributes = {},
  ...contents: readonly Content[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(kind), attributes, contents);
}

/** The same of a drawing. */
export function draw<K extends keyof SVGElementTagNameMap>(
  kind: K,
  attributes: Attributes = {},
  ...contents: readonly Content[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", kind), attributes, contents);
}

function fill<E extends Element>(element: E, attributes: Attributes, contents: readonly Content[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...contents.filter((content) => content !== undefined).map(toNode));
  return element;
}

function toNode(content: Node | string | number): Node | string {
  return typeof content === "number" ? String(content) : content;
}

/** An element of the page's own markup. */
export function at(id: string): HTMLElement {
  return document.getElementById(id)!;
}

/** A button that does something. */
export function button(label: string, attributes: Attributes, press: () => unknown): HTMLButtonElement {
  const made = h("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", () => void press());
  return made;
}

/** Changes a text where it is another one: who listens to the page is told of changes alone. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
