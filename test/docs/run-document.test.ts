/** The runner of documents: each kind of wrong document fails. */
import test from "ava";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { runDocument } from "./run-document.js";
import { createSandbox, type Sandbox } from "./sandbox.js";

/** A shared sandbox for documents that change no files. */
let sandbox: Sandbox;
const teardown = fileTeardown();

test.before(async () => {
  sandbox = await createSandbox(teardown);
});

/** Joins lines to a document. Fences are written as ~~~. */
const page = (...lines: readonly string[]): string => lines.join("\n");

test("compares responses of a node, with its ports, keys and times instead of the shown ones", async (t) => {
  const [one, two] = [`0x${"1".repeat(64)}`, `0x${"2".repeat(64)}`];
  const right = page(
    "~~~console",
    "$ curl http://127.0.0.1:53550/version",
    '"0.2.0"',
    "",
    "$ curl http://127.0.0.1:53550/connectionstring",
    '"http://127.0.0.1:53550"',
    "",
    "$ curl http://127.0.0.1:53550/publickey",
    `"${one}"`,
    "",
    "$ curl http://127.0.0.1:53550/info",
    `{…"identity":"${one}",…}`,
    "",
    `$ curl http://127.0.0.1:53550/storage-program/owner/${one}`,
    '{"success":true,"programs":[],"count":0}',
    "~~~",
  );
  const wrong = right
    .replace('"0.2.0"', '{"version":"0.2.0"}')
    .replace('"http://127.0.0.1:53550"', '"http://127.0.0.1:53551"')
    .replace(`"identity":"${one}"`, `"identity":"${two}"`)
    .replace('"programs":[]', '"programs":[1]');
  const node = [
    "<!-- test: in node, stays until network-ready",
    "$ gatehouse devnet --nodes 1 --json --log-level error",
    "-->",
  ];
  const { failures, commands } = await runDocument(t, page(...node, right, wrong), sandbox);
  t.is(commands, 11);
  t.deepEqual(
    failures.map((failure) => /^(\d+): \$? ?curl \S+53550\/([a-z-]+)/.exec(failure)?.slice(1)),
    [
      ["21", "version"],
      ["24", "connectionstring"],
      ["30", "info"],
      ["33", "storage-program"],
    ],
    failures.join("\n"),
  );
  t.true(failures[0]!.endsWith('\n"0.2.0"\n--- shown:\n{"version":"0.2.0"}'), failures[0]);
});

for (const [label, ...lines] of [
  ["another line", "~~~console", "$ echo one", "two", "~~~"],
  ["a missing line", "~~~console", "$ printf 'one\\ntwo\\n'", "one", "~~~"],
  ["an extra line", "~~~console", "$ echo one", "one", "two", "~~~"],
  ["missing output", "~~~console", "$ echo one", "~~~"],
  ["a number that does not vary", "<!-- test: varies 3 -->", "~~~console", "$ echo 1 2", "3 4", "~~~"],
  ["two values that are equal", "~~~console", `$ printf '0x%064d 0x%064d' 7 7`, name("a", "b"), "~~~"],
  ["one value that is two", "~~~console", `$ printf '0x%064d 0x%064d' 7 8`, name("a", "a"), "~~~"],
  ["a command that fails", "~~~sh", "echo one; false", "~~~"],
  ["a command that should fail", "<!-- test: fails -->", "~~~sh", "true", "~~~"],
  ["a command that should stay", "<!-- test: stays until one -->", "~~~sh", "echo one", "~~~"],
  ["another port", "~~~console", "$ echo http://127.0.0.1:53551", "http://127.0.0.1:53550", "~~~"],
  ["a variable of another terminal", "~~~sh", "a=1", "~~~", "<!-- test: in two -->", "~~~sh", 'test "$a" = 1', "~~~"],
  ["a block without a direction", "~~~json", "{}", "~~~"],
  ["a block without a language", "~~~", "one", "~~~"],
  ["a skip without a reason", "<!-- test: skip -->", "~~~json", "{}", "~~~"],
  ["an unknown direction", "<!-- test: sometimes -->", "~~~sh", "true", "~~~"],
  ["a passage that the file does not contain", "<!-- test: part of LICENSE -->", "~~~txt", "END OF TERMS", "~~~"],
  ["a passage of a missing file", "<!-- test: part of NONE -->", "~~~txt", "1", "~~~"],
  ["a comment without a block", "<!-- test: fails -->", "", "text"],
  ["a file that git would see", "~~~sh", "echo one > secret.txt", "~~~"],
  ["a change of a file in the clone", "~~~sh", "echo one > examples/genesis.json", "~~~"],
  ["a path of the machine", "~~~sh", "echo one >/etc/gatehouse.test", "~~~"],
  ["a program that changes the machine", "~~~sh", "apt-get --version", "~~~"],
  ["a missing script", "~~~sh", "npm run fly", "~~~"],
] as const) {
  test(`a document fails for ${label}`, async (t) => {
    const { failures } = await runDocument(t, page(...lines), /git|change/.test(label) ? undefined : sandbox);
    t.is(failures.length, 1, failures.join("\n"));
  });
}

function name(...digits: readonly string[]): string {
  return digits.map((digit) => `0x${digit.repeat(64)}`).join(" ");
}

test("a document passes with values that may vary", async (t) => {
  const shown = page(
    "<!-- test: varies 3.5 4 -->",
    "~~~console",
    "$ echo 'up 7 s, 41 ticks, 4.2'",
    "up 3.5 s, 4 ticks, …",
    "",
    "$ printf '%s\\n' a b c d",
    "a",
    "...",
    "d",
    "",
    "$ echo 1795249399659 2026-01-01T00:00:00.000Z",
    "1700000000000 2025-12-31T23:59:59Z",
    "~~~",
    "<!-- test: skip, a picture -->",
    "~~~",
    "+--+",
    "~~~",
    "<!-- test: needs no-such-program -->",
    "~~~sh",
    "no-such-program",
    "~~~",
    "<!-- test: save as data.json -->",
    "~~~json",
    '{ "a": 1 }',
    "~~~",
    "<!-- test:",
    "$ mkdir -p data && mv data.json data/ && cat data/data.json && cd data",
    '{ "a": 1 }',
    "-->",
    "<!-- test: part of tsconfig.json -->",
    "~~~json",
    '"module": "nodenext",',
    '"moduleResolution": "nodenext",',
    "~~~",
    "1. In a list:",
    "   ~~~console",
    '   $ basename "$PWD" && \\',
    "     cat <<END",
    "   > here",
    "   > END",
    "   data",
    "   here",
    "   ~~~",
  );
  t.deepEqual(await runDocument(t, shown), {
    failures: [],
    skipped: ["16: a picture", "20: no-such-program is not installed"],
    commands: 5,
  });
});

test("a command that stays is stopped, and must exit with 0", async (t) => {
  const stays = (command: string): string =>
    page("<!-- test: in server, stays until up -->", "~~~sh", command, "~~~", "<!-- test: stop server -->");
  const { failures } = await runDocument(t, stays("trap 'exit 0' INT; echo up; while :; do sleep 0.1; done"), sandbox);
  t.deepEqual(failures, ["0: It ends the shell:\nup\n"]);
  const polite = `node -e 'process.on("SIGINT", () => process.exit(CODE)); console.log("up"); setInterval(() => 0, 99)'`;
  t.deepEqual((await runDocument(t, stays(polite.replace("CODE", "0")), sandbox)).failures, []);
  t.regex((await runDocument(t, stays(polite.replace("CODE", "7")), sandbox)).failures.join(), /ends with 7/);
});
