/** What is printed fits the terminal, at any width; what goes elsewhere is not broken. */
import test from "ava";
import { createProgram } from "../../../src/cli/program.js";
import { describeWarnings, table } from "../../../src/cli/terminal/output.js";
import { barLine } from "../../../src/cli/terminal/progress.js";
import { lengthOf, wrap } from "../../../src/cli/terminal/wrap.js";
import { testKey, writeKey } from "../../helpers/chain/keys.js";
import { runCli } from "../../helpers/nodes/run-cli.js";
import { startMember } from "../../helpers/nodes/start-member.js";
import type { Command } from "commander";
import { join } from "node:path";

const linesOf = (text: string): string[] => text.split("\n");
const widest = (lines: readonly string[]): number =>
  Math.max(...lines.map((line) => line.replace(/\u001b\[\d+m/g, "").length));
const lettersOf = (text: string): string =>
  text
    .replace(/\u001b\[\d+m/g, "")
    .replace(/[\s\\]/g, "")
    .split("")
    .sort()
    .join("");

const hash = `0x${"0123456789abcdef".repeat(4)}`;
const remark = "Another process runs it, and has not reported it to the control service yet.";
const tables = {
  "a remark at the end": [
    ["SUBSYSTEM", "STATUS", "PORT", "SINCE", ""],
    ["chain", "ready", "", "2 min 3 s ago", ""],
    ["l2ps", "skipped", "53550", "2 min 3 s ago", remark],
  ],
  "a long text at the end": [
    ["PEER", "STATE", "VERIFIED"],
    ["http://127.0.0.1:53551", "ready", `no: ${remark}`],
  ],
  "a hash at the end, which is not broken before it stands below": [
    ["BLOCK", "TIME", "PROPOSER", ""],
    ["1", "2026-11-23T02:06:15.624Z", "0x1cba760c…354a", hash],
    ["2", "2026-11-23T02:06:15.624Z", "0x1cba760c…354a", `${hash} Adds a commitment to the tree: ${hash}`],
  ],
  "long hashes": [
    ["LEAF", "BLOCK", "ROOT"],
    ["1", "2", hash],
    ["3", "4", hash],
  ],
};

for (const [title, rows] of Object.entries(tables)) {
  test(`a table fits, and nothing of its rows is lost: ${title}`, (t) => {
    const unbroken = table(rows, Infinity);
    t.is(unbroken.length, rows.length);
    for (let width = 30; width < 140; width++) {
      const lines = table(rows, width);
      t.true(widest(lines) <= width, `${width}:\n${lines.join("\n")}`);
      for (const row of rows.slice(1)) {
        const letters = lettersOf(lines.join(""));
        t.true(
          row.every((cell) => [...new Set(lettersOf(cell))].every((letter) => letters.includes(letter))),
          `${width}`,
        );
      }
      t.is(
        lettersOf(lines.join("")).length >= lettersOf(rows.slice(1).flat().join("")).length,
        true,
        `${width}:\n${lines.join("\n")}`,
      );
    }
  });
}

test("a hash is whole wherever a line has room for it", (t) => {
  const rows = tables["a hash at the end, which is not broken before it stands below"];
  for (let width = 70; width < 140; width++) {
    t.is(table(rows, width).join("\n").split(hash).length, 4, `${width}`);
  }
});

test("a text that is broken keeps its color on each of its lines, and no other", (t) => {
  const lines = wrap(`\u001b[33m${remark}\u001b[39m`, 30);
  t.true(lines.length > 2);
  for (const line of lines) {
    t.regex(line, /^\u001b\[33m[^\u001b]+\u001b\[(0|39)m$/);
  }
});

test("a bar and its text are one line, however narrow it is", (t) => {
  const text = "12000 of 100000 blocks, 800/s, 1 min 50 s left";
  for (let width = 20; width < 120; width++) {
    t.true(lengthOf(barLine(0.3, text, width)) < width);
  }
  t.is(barLine(0.5, text, Infinity), `${"█".repeat(12)}${"░".repeat(12)} ${text}`);
});

function pathsOf(command: Command, above: readonly string[] = []): string[][] {
  return command.commands.flatMap((subcommand) => {
    const path = [...above, subcommand.name()];
    return [path, ...pathsOf(subcommand, path)];
  });
}

test("every page of help fits 60 and 80 columns, and has all that a wide one has", async (t) => {
  const pages = [[], ...pathsOf(await createProgram(() => true))];
  t.true(pages.length > 35, `${pages.length}`);
  for (const page of pages) {
    const plain = await runCli([...page, "--help"]);
    t.is(plain.code, 0);
    t.true(widest(linesOf(plain.stdout)) <= 80, plain.stdout);
    const narrow = await runCli([...page, "--help"], { env: { COLUMNS: "60" } });
    t.true(widest(linesOf(narrow.stdout)) <= 60, narrow.stdout);
    t.is(lettersOf(narrow.stdout), lettersOf(plain.stdout), page.join(" "));
  }
});

test("what a node says fits 60 columns; in a pipe each row is a line, without colors", async (t) => {
  const { rpcUrl, dir } = await startMember(t);
  const key = join(dir, "alice.key");
  await writeKey(key, testKey(2));
  const made = await runCli(["storage", "create", "notes", "--access", "public", "--key", key, "--node", rpcUrl]);
  t.is(made.code, 0, made.stderr);
  for (const args of [
    ["health"],
    ["peers"],
    ["block", "list"],
    ["tx", "list"],
    ["storage", "history", made.stdout.split("\n")[0]!],
    ["search", "notes"],
    ["search", "1"],
  ]) {
    const narrow = await runCli([...args, "--node", rpcUrl], { env: { COLUMNS: "60" } });
    t.true(widest(linesOf(narrow.stdout)) <= 60, narrow.stdout);
    const piped = await runCli([...args, "--node", rpcUrl]);
    t.notRegex(piped.stdout, /\u001b/);
    t.true(widest(linesOf(piped.stdout)) > 60, piped.stdout);
  }
});

test("warnings are broken between words, below each other, and left whole where there is no terminal", (t) => {
  const warnings = [`${remark} ${remark}`, "Short."];
  const lines = describeWarnings(warnings, 60);
  t.true(widest(lines) <= 60);
  t.deepEqual(
    lines.map((line) => line.replace(/\u001b\[\d+m/g, "").slice(0, 2)),
    ["! ", "  ", "  ", "! "],
  );
  t.is(lettersOf(lines.join("")), lettersOf(`!!${warnings.join("")}`));
  t.is(describeWarnings(warnings, Infinity).length, 2);
});
