/** Creates DOM elements. Data from a node is always inserted as text, never as markup. */

/** Content of an element. */
export type Content = Node | string | number | undefined;

/** Attributes by name. Undefined and false omit an attribute; true sets it without a value. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Creates an element with attributes and content. */
export function h<K extends keyof HTMLElementTagNameMap>(
  kind: K,
  attributes: Attributes = {},
  ...contents: readonly Content[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(kind), attributes, contents);
}

/** Creates an SVG element with attributes and content. */
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

/** Returns the element of the static HTML page that has this id. */
export function byId(id: string): HTMLElement {
  return document.getElementById(id)!;
}

/** Creates a button that calls `press` on a click. */
export function button(label: string, attributes: Attributes, press: () => unknown): HTMLButtonElement {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", () => void press());
  return element;
}

/** Sets the text of an element only if it differs, so that screen readers announce only changes. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
