/**
 * Parses the fenced blocks of a Markdown document, and the comments before them that say how to run them.
 * CONTRIBUTING.md describes the comments.
 */
import { tokensOf } from "./markdown.js";

/** The directions of a comment for the block after it or within it. */
export interface Directions {
  /** The reason to skip the block. */
  readonly skip?: string;
  /** The name of the terminal that runs it. */
  readonly terminal: string;
  /** The last command keeps running. The next step starts after the text `until`, or the shown output. */
  readonly stays: boolean;
  readonly until?: string;
  /** The last command must exit with a code other than 0. */
  readonly fails: boolean;
  /** The block is saved to this file instead of being run. */
  readonly saveAs?: string;
  /** The block must be a passage of this file, which other tests run. */
  readonly partOf?: string;
  /** Required programs. Without one of them, the block is skipped. */
  readonly needs: readonly string[];
  /** Shown numbers that may be any number in the output. */
  readonly varies: readonly string[];
}

/** A block, visible or in a comment. */
export interface Block {
  readonly kind: "block";
  /** The number of its first line. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  readonly directions: Directions;
}

/** A step of a document: a block, Ctrl-C in a terminal (`stop`), or waiting for its command to exit (`end`). */
export type Step = Block | { readonly kind: "stop" | "end"; readonly line: number; readonly terminal: string };

/** A command of a console block, and the output shown below it. */
export interface Command {
  readonly line: number;
  readonly text: string;
  readonly shown: readonly string[];
}

const comment = /^<!--\s*test:[ \t]*([^\n]*?)[ \t]*(?:\n([\s\S]*?)\n?)?\s*-->$/;

/**
 * Parses the steps of a document.
 *
 * @throws Error with a line number if a comment is invalid or has no block.
 */
export function readSteps(markdown: string): Step[] {
  const steps: Step[] = [];
  let pending: { readonly line: number; readonly directions: Directions } | undefined;

  const rejectPending = (): void => {
    if (pending !== undefined) {
      throw new Error(`line ${pending.line}: no block follows the comment`);
    }
  };
  const readComment = (text: string, line: number): void => {
    const [, words, hidden] = comment.exec(text) ?? [];
    if (words === undefined) {
      return;
    }
    rejectPending();
    const [, kind, terminal = ""] = /^(stop|end) (\w+)$/.exec(words) ?? [];
    if (kind !== undefined) {
      steps.push({ kind: kind as "stop" | "end", line, terminal });
      return;
    }
    const directions = readDirections(words, line);
    if (hidden === undefined) {
      pending = { line, directions };
    } else {
      steps.push({ kind: "block", line: line + 1, language: "console", text: hidden, directions });
    }
  };
  for (const { type, line, content, info } of tokensOf(markdown)) {
    if (type === "html_block") {
      for (const text of content.split(/(?<=-->)\n/)) {
        readComment(text.trim(), line);
      }
    } else if (type === "fence") {
      const directions = pending?.directions ?? readDirections("", line);
      const [language = ""] = info.split(/\s/);
      steps.push({ kind: "block", line: line + 1, language, text: content.replace(/\n$/, ""), directions });
      pending = undefined;
    } else if (type === "inline") {
      rejectPending();
    }
  }
  rejectPending();
  return steps;
}

/** Directions by their words. Those with `(.+)` have a value. */
const grammar: readonly (readonly [RegExp, (value: string) => Partial<Directions>])[] = [
  [/^in (.+)$/, (terminal) => ({ terminal })],
  [/^stays until (.+)$/, (until) => ({ stays: true, until })],
  [/^stays()$/, () => ({ stays: true })],
  [/^fails()$/, () => ({ fails: true })],
  [/^save as (.+)$/, (saveAs) => ({ saveAs })],
  [/^part of (.+)$/, (partOf) => ({ partOf })],
  [/^needs (.+)$/, (programs) => ({ needs: programs.split(" ") })],
  [/^varies (.+)$/, (numbers) => ({ varies: numbers.split(" ") })],
];

function readDirections(words: string, line: number): Directions {
  const none = { terminal: "main", stays: false, fails: false, needs: [], varies: [] };
  const [, reason] = /^skip, (.+)$/.exec(words) ?? [];
  if (reason !== undefined) {
    return { ...none, skip: reason };
  }
  const parts = words.split(",").map((part) => part.trim());
  const directions = parts
    .filter((part) => part !== "")
    .map((part) => {
      const found = grammar.find(([pattern]) => pattern.test(part));
      if (found === undefined) {
        throw new Error(`line ${line}: "${part}" is not understood`);
      }
      const [pattern, read] = found;
      return read(pattern.exec(part)![1]!);
    });
  return Object.assign({}, none, ...directions) as Directions;
}

/**
 * Parses the commands of a console block. A command starts with `$ `. It continues on the next line after a backslash,
 * or if that line starts with `> `.
 *
 * @throws Error if the block does not start with a command.
 */
export function readCommands({ text, line }: Block): Command[] {
  const commands: { line: number; text: string; shown: string[] }[] = [];
  for (const [i, content] of text.split("\n").entries()) {
    const last = commands.at(-1);
    if (content.startsWith("$ ")) {
      commands.push({ line: line + i, text: content.slice(2), shown: [] });
    } else if (last === undefined) {
      throw new Error(`line ${line}: a console block must start with "$ "`);
    } else if (last.shown.length === 0 && (last.text.endsWith("\\") || content.startsWith("> "))) {
      last.text += `\n${content.replace(/^> /, "")}`;
    } else {
      last.shown.push(content);
    }
  }
  return commands.map((command) => ({ ...command, shown: trimEndLines(command.shown) }));
}

/** Removes empty lines at the end, which separate commands in a document. */
export function trimEndLines(lines: readonly string[]): string[] {
  return lines.slice(0, lines.findLastIndex((line) => line.trim() !== "") + 1);
}

/** Returns true if a file contains the lines of a text in a row, with any common indentation. */
export function isPassage(file: string, text: string): boolean {
  const [all, lines] = [file.split("\n"), text.split("\n")];
  return all.some((first, at) => {
    const indent = first.slice(0, Math.max(0, first.length - lines[0]!.length));
    return indent.trim() === "" && lines.every((line, i) => all[at + i] === (line === "" ? "" : indent + line));
  });
}
