/**
 * Reads the fenced blocks of a Markdown document, and what the comments before them say about running them. CONTRIBUTING.md
 * describes the comments for those who write documents.
 */
import { tokensOf } from "./markdown.js";

/** What a comment says about the block that it stands before, or holds. */
export interface Directions {
  /** Why the block is not run. */
  readonly skip?: string;
  /** In which terminal it runs. */
  readonly terminal: string;
  /** Its last command goes on; the document does, once this text, or the output that is shown, has come. */
  readonly stays: boolean;
  readonly until?: string;
  /** Its last command ends with an exit code other than 0. */
  readonly fails: boolean;
  /** It is no command but the content of this file. */
  readonly saveAs?: string;
  /** It is a passage of this file, which is tested as a whole elsewhere. */
  readonly partOf?: string;
  /** Programs without which it is left out. */
  readonly needs: readonly string[];
  /** Numbers in its output in whose place any may come. */
  readonly varies: readonly string[];
}

/** A block, shown or in a comment. */
export interface Block {
  readonly kind: "block";
  /** Line of its first line. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  readonly directions: Directions;
}

/** What a document has for a reader to do, in its order. What runs in a terminal is stopped by Ctrl-C, or ends by itself. */
export type Step = Block | { readonly kind: "stop" | "end"; readonly line: number; readonly terminal: string };

/** A command of a console block, and the lines that are shown below it. */
export interface Command {
  readonly line: number;
  readonly text: string;
  readonly shown: readonly string[];
}

const comment = /^<!--\s*test:[ \t]*([^\n]*?)[ \t]*(?:\n([\s\S]*?)\n?)?\s*-->$/;

/**
 * The steps of a document.
 *
 * @throws Error with a line number when a comment is not understood or belongs to no block.
 */
export function readSteps(markdown: string): Step[] {
  const steps: Step[] = [];
  let pending: { readonly line: number; readonly directions: Directions } | undefined;

  const nothingPending = (): void => {
    if (pending !== undefined) {
      throw new Error(`line ${pending.line}: no block follows the comment`);
    }
  };
  const readComment = (text: string, line: number): void => {
    const [, words, hidden] = comment.exec(text) ?? [];
    if (words === undefined) {
      return;
    }
    nothingPending();
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
      nothingPending();
    }
  }
  nothingPending();
  return steps;
}

function readDirections(words: string, line: number): Directions {
  const none = { terminal: "main", stays: false, fails: false, needs: [], varies: [] };
  const [, reason] = /^skip, (.+)$/.exec(words) ?? [];
  if (reason !== undefined) {
    return { ...none, skip: reason };
  }
  return words
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .reduce<Directions>((directions, part) => ({ ...directions, ...readDirection(part, line) }), none);
}

function readDirection(text: string, line: number): Partial<Directions> {
  const [, word, rest = ""] = /^(in|stays until|stays|fails|save as|part of|needs|varies)(?: (.+))?$/.exec(text) ?? [];
  const hasRest = word !== "stays" && word !== "fails";
  if (word === undefined || (rest !== "") !== hasRest) {
    throw new Error(`line ${line}: "${text}" is not understood`);
  }
  switch (word) {
    case "in":
      return { terminal: rest };
    case "stays until":
      return { stays: true, until: rest };
    case "stays":
      return { stays: true };
    case "fails":
      return { fails: true };
    case "save as":
      return { saveAs: rest };
    case "part of":
      return { partOf: rest };
    case "needs":
      return { needs: rest.split(" ") };
    default:
      return { varies: rest.split(" ") };
  }
}

/**
 * The commands of a console block. A command begins with `$ `; it goes on in the next line where it ends with a backslash,
 * or where that line begins with `> `.
 *
 * @throws Error when it does not begin with a command.
 */
export function readCommands({ text, line }: Block): Command[] {
  const commands: { line: number; text: string; shown: string[] }[] = [];
  for (const [i, content] of text.split("\n").entries()) {
    const last = commands.at(-1);
    if (content.startsWith("$ ")) {
      commands.push({ line: line + i, text: content.slice(2), shown: [] });
    } else if (last === undefined) {
      throw new Error(`line ${line}: a console block begins with "$ "`);
    } else if (last.shown.length === 0 && (last.text.endsWith("\\") || content.startsWith("> "))) {
      last.text += `\n${content.replace(/^> /, "")}`;
    } else {
      last.shown.push(content);
    }
  }
  return commands.map((command) => ({ ...command, shown: withoutEmptyEnd(command.shown) }));
}

/** Without the empty lines at the end: in a document they stand between commands. */
export function withoutEmptyEnd(lines: readonly string[]): string[] {
  return lines.slice(0, lines.findLastIndex((line) => line.trim() !== "") + 1);
}

/** Whether the lines of a text stand in a file one after the other, further to the right if need be. */
export function isPassage(file: string, text: string): boolean {
  const [all, lines] = [file.split("\n"), text.split("\n")];
  return all.some((first, at) => {
    const indent = first.slice(0, Math.max(0, first.length - lines[0]!.length));
    return indent.trim() === "" && lines.every((line, i) => all[at + i] === (line === "" ? "" : indent + line));
  });
}
