// Checks the language of comments and documents by the rules of CONTRIBUTING.md. `npm run lint` runs it.
// `node tools/lint/plain-words.mjs --update` stores the present number of long sentences of each document as its limit.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

/** Words that docstrings must not open with. */
const opening =
  /^(what|who|whose|whom|whoever|how|whether|why|where|which|it|they|one|those|that|of|nobody|everybody|somebody|nothing|something|there)\b/i;

/** Rejected terms, each with the term of the field. */
const terms = new Map([
  ["taken back", "rolled back"],
  ["takes back", "rolls back"],
  ["least first", "priority queue"],
  ["whoever", "the client, the peer, the operator"],
  ["somebody", "a client, a peer, an operator"],
  ["nobody", "no client, no peer, no operator"],
  ["everybody", "all clients"],
  ["newest", "latest"],
  ["anew", "again"],
  ["mended", "fixed"],
  ["roomily", "generously"],
  ["colour", "color"],
  ["catalogue", "catalog"],
  ["neighbour", "neighbor"],
  ["behaviour", "behavior"],
]);
const termPattern = new RegExp(`\\b(${[...terms.keys()].join("|")})`, "gi");

/** Maximum number of words of a sentence. */
const maxWords = 25;
/** Number of words from which a sentence may stand in a document only once. */
const minRepeatedWords = 8;
/** Number of longer sentences that each document may have. */
const limitsFile = "tools/lint/long-sentences.json";
const limits = JSON.parse(readFileSync(limitsFile, "utf8"));

const listFiles = (...patterns) =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...patterns], {
    encoding: "utf8",
  })
    .split("\n")
    .filter(Boolean);
const lineOf = (text, index) => text.slice(0, index).split("\n").length;

const findings = [];
const report = (file, line, message) => findings.push(`${file}:${line} ${message}`);

/** Reports the rejected terms of a text that starts at `firstLine` of a file. */
function checkTerms(file, firstLine, prose) {
  for (const { 0: term, index } of prose.matchAll(termPattern)) {
    report(file, firstLine + lineOf(prose, index) - 1, `"${term}": use "${terms.get(term.toLowerCase())}"`);
  }
}

/** Checks the docstrings, comments and texts of a TypeScript file. A text is a string literal of several words. */
function checkSource(file) {
  const text = readFileSync(file, "utf8");
  for (const { 0: literal, index } of text.matchAll(
    /"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)* (?:[^`\\]|\\.)*`/g,
  )) {
    checkTerms(file, lineOf(text, index), literal);
  }
  for (const { 0: comment, 1: doc, index } of text.matchAll(/\/\*\*([\s\S]*?)\*\/|^\s*\/\/ .*$/gm)) {
    const line = lineOf(text, index);
    checkTerms(file, line, comment);
    const word = opening.exec((doc ?? "").replace(/^[\s*]+/, ""))?.[1];
    if (word !== undefined) {
      report(file, line, `opens with "${word}": open with a verb or a noun`);
    }
  }
}

/** Splits the prose of a document into sentences; code, tables, headings and comments are left out. */
function sentencesOf(text) {
  return text
    .replace(/^(`{3,})[\s\S]*?^\1/gm, "")
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/^(\||#).*$/gm, "\n")
    .replace(/`[^`]*`/g, "code")
    .replace(/\]\([^)]*\)/g, "]")
    .split(/(?:[.:;!?]["')\]*_]*\s|\n\s*\n|\n\s*(?:[-*]|\d+\.) )/)
    .map((sentence) => sentence.trim())
    .filter(Boolean);
}

/** Checks a document, and returns its long sentences. */
function checkDocument(file) {
  // Generated tables have the texts of the source.
  const text = readFileSync(file, "utf8").replace(/<!-- generated: [\s\S]*?<!-- \/generated: .*?-->/g, (block) =>
    block.replace(/[^\n]/g, " "),
  );
  const prose = text.replace(/^(`{3,})[\s\S]*?^\1/gm, (block) => block.replace(/[^\n]/g, " "));
  checkTerms(
    file,
    1,
    prose.replace(/`[^`]*`/g, (code) => code.replace(/[^\n]/g, " ")),
  );
  for (const { 0: heading, 1: title, index } of prose.matchAll(/^#+ (.*)$/gm)) {
    if (/\?$|^(what|who|how|why|when|where|which)\b/i.test(title)) {
      report(file, lineOf(prose, index), `"${heading.trim()}": name the thing, do not ask`);
    }
  }
  const sentences = sentencesOf(text);
  for (const [i, sentence] of sentences.entries()) {
    if (sentence.split(/\s+/).length >= minRepeatedWords && sentences.indexOf(sentence) < i) {
      report(file, 1, `stands twice: ${sentence.slice(0, 90)}…`);
    }
  }
  return sentences.filter((sentence) => sentence.split(/\s+/).length > maxWords);
}

for (const file of listFiles("src/*.ts", "client/src/*.ts")) {
  checkSource(file);
}
const isUpdate = process.argv.includes("--update");
const counts = {};
for (const file of listFiles(
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "docs/*.md",
  "client/README.md",
  "deploy/README.md",
  "examples/**/README.md",
  "src/**/README.md",
)) {
  const long = checkDocument(file);
  const limit = limits[file] ?? 0;
  if (long.length > 0) {
    counts[file] = long.length;
  }
  if (long.length > limit && !isUpdate) {
    report(
      file,
      1,
      `${long.length} sentences have more than ${maxWords} words, ${limit} may: ${long.at(-1).slice(0, 90)}…`,
    );
  }
}
if (isUpdate) {
  writeFileSync(limitsFile, `${JSON.stringify(counts, null, 2)}\n`);
}
for (const finding of findings) {
  console.error(finding);
}
console.log(`Language: ${findings.length} findings`);
process.exitCode = findings.length > 0 ? 1 : 0;
