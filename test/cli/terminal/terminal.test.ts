/** Output of the commands: wrapped to the width of a terminal, and unwrapped elsewhere. */
import test from "ava";
import { createProgram } from "../../../src/cli/program.js";
import { describeWarnings, table } from "../../../src/cli/terminal/output.js";
import { barLine } from "../../../src/cli/terminal/progress.js";
import { lengthOf, wrap } from "../../../src/cli/terminal/wrap.js";
import { testKey, writeKey } from "../../helpers/chain/keys.js";
import { runCli } from "../../helpers/nodes/run-cli.js";
import { startMember } from "../../helpers/nodes/start-node.js";
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
  "a hash at the end, which goes below its row before it breaks": [
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
  test(`a table fits widths from 30 to 139 and loses no content: ${title}`, (t) => {
    const unwrapped = table(rows, Infinity);
    t.is(unwrapped.length, rows.length);
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

test("a hash is not broken at widths of 70 or more", (t) => {
  const rows = tables["a hash at the end, which goes below its row before it breaks"];
  for (let width = 70; width < 140; width++) {
    t.is(table(rows, width).join("\n").split(hash).length, 4, `${width}`);
  }
});

test("wrapped text has its color on each line", (t) => {
  const lines = wrap(`\u001b[33m${remark}\u001b[39m`, 30);
  t.true(lines.length > 2);
  for (const line of lines) {
    t.regex(line, /^\u001b\[33m[^\u001b]+\u001b\[(0|39)m$/);
  }
});

test("a progress bar and its text fit one line at any width", (t) => {
  const text = "12000 of 100000 blocks, 800/s, 1 min 50 s left";
  for (let width = 20; width < 120; width++) {
    t.true(lengthOf(barLine(0.3, text, width)) < width);
  }
  t.is(barLine(0.5, text, Infinity), `${"█".repeat(12)}${"░".repeat(12)} ${text}`);
});

/** Returns the paths of all subcommands. */
function pathsOf(command: Command, above: readonly string[] = []): string[][] {
  return command.commands.flatMap((subcommand) => {
    const path = [...above, subcommand.name()];
    return [path, ...pathsOf(subcommand, path)];
  });
}

test("every help page fits 60 and 80 columns, and loses no content", async (t) => {
  const pages = [[], ...pathsOf(await createProgram(() => true))];
  t.true(pages.length > 35, `${pages.length}`);
  for (const page of pages) {
    const unlimited = await runCli([...page, "--help"]);
    t.is(unlimited.code, 0);
    t.true(widest(linesOf(unlimited.stdout)) <= 80, unlimited.stdout);
    const narrow = await runCli([...page, "--help"], { env: { COLUMNS: "60" } });
    t.true(widest(linesOf(narrow.stdout)) <= 60, narrow.stdout);
    t.is(lettersOf(narrow.stdout), lettersOf(unlimited.stdout), page.join(" "));
  }
});

test("tables of a node fit 60 columns; in a pipe they are not wrapped and have no colors", async (t) => {
  const { rpcUrl, dir } = await startMember(t);
  const key = join(dir, "alice.key");
  await writeKey(key, testKey(2));
  const created = await runCli(["storage", "create", "notes", "--access", "public", "--key", key, "--node", rpcUrl]);
  t.is(created.code, 0, created.stderr);
  for (const args of [
    ["health"],
    ["peers"],
    ["block", "list"],
    ["tx", "list"],
    ["storage", "history", created.stdout.split("\n")[0]!],
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

test("warnings wrap between words on a terminal, and take one line each elsewhere", (t) => {
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
