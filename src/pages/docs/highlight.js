/** Colors of code. Text stays text: each token becomes an element with a class. */
import { h } from "../explore/dom.ts";

/** Longest text in characters that is colored, since each token takes an element. */
const maxLength = 60_000;

const words = {
  json: "true|false|null",
  shell: "curl|buf|gatehouse",
  JavaScript: "await|const|for|of|true|false|null",
  Python: "from|import|with|as|for|in|print",
  Go: "package|import|func|if|defer|nil|panic",
};

/** Returns the tokens of a language: names of members, strings, flags of commands, numbers, and words. */
const tokensOf = (language) =>
  new RegExp(
    [
      String.raw`(?<key>"(?:\\.|[^"\\\n])*"(?=\s*:))`,
      String.raw`(?<string>"(?:\\.|[^"\\\n])*"|'[^']*')`,
      String.raw`(?<flag>(?<=^|\s)--?[A-Za-z][\w-]*)`,
      String.raw`(?<number>(?<![\w.])-?\d[\d.]*(?:[eE][+-]?\d+)?\b)`,
      String.raw`(?<word>\b(?:${words[language] ?? words.json})\b)`,
    ].join("|"),
    "gm",
  );

/** Shows code in an element. */
export function showCode(element, text, language) {
  if (text.length > maxLength) {
    element.textContent = text;
    return;
  }
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(tokensOf(language))) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (match.index > end) {
      parts.push(text.slice(end, match.index));
    }
    parts.push(h("span", { class: `code-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  element.replaceChildren(...parts, text.slice(end));
}

/** Colors the code of the page when it comes into view. */
export function colorPage() {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) {
          observer.unobserve(target);
          showCode(target, target.textContent, target.dataset.language);
        }
      }
    },
    { rootMargin: "50%" },
  );
  document.querySelectorAll("pre[data-language]").forEach((element) => observer.observe(element));
}

/** Matches the tokens of JSON: strings, structure, and other values. */
const jsonTokens = /"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Indents JSON. Keeps the text of each value, since JavaScript would lose digits of long numbers. */
export function indentJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  let result = "";
  const tokens = text.match(jsonTokens);
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, i) => {
    const isEmpty = /[[{]/.test(tokens[i - 1]?.[0] ?? "") && tokens[i - 1].length === 1;
    if (token === "{" || token === "[") {
      depth++;
      result += token + (/^[\]}]$/.test(tokens[i + 1]) ? "" : line());
    } else if (token === "}" || token === "]") {
      depth--;
      result += (isEmpty ? "" : line()) + token;
    } else if (token === ",") {
      result += token + line();
    } else {
      result += token === ":" ? ": " : token;
    }
  });
  return result;
}
