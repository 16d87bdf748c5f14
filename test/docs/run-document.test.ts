/** That a document which says something else than what comes fails, whatever it is that is wrong with it. */
import test from "ava";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { runDocument } from "./run-document.js";
import { makeSandbox, type Sandbox } from "./sandbox.js";

/** For documents that leave nothing in it. */
let sandbox: Sandbox;
const teardown = fileTeardown();

test.before(async () => {
  sandbox = await makeSandbox(teardown);
});

/** A document of lines; a fence is written as ~~~. */
const page = (...lines: readonly string[]): string => lines.join("\n");

test("what a node answers is compared, with its ports, names and times in place of those that are shown", async (t) => {
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

for (const [what, ...lines] of [
  ["another line", "~~~console", "$ echo one", "two", "~~~"],
  ["a line too few", "~~~console", "$ printf 'one\\ntwo\\n'", "one", "~~~"],
  ["a line too many", "~~~console", "$ echo one", "one", "two", "~~~"],
  ["no output where there is some", "~~~console", "$ echo one", "~~~"],
  ["a number that does not vary", "<!-- test: varies 3 -->", "~~~console", "$ echo 1 2", "3 4", "~~~"],
  ["two names that are one", "~~~console", `$ printf '0x%064d 0x%064d' 7 7`, name("a", "b"), "~~~"],
  ["one name that is two", "~~~console", `$ printf '0x%064d 0x%064d' 7 8`, name("a", "a"), "~~~"],
  ["a command that fails", "~~~sh", "echo one; false", "~~~"],
  ["a command that shall fail", "<!-- test: fails -->", "~~~sh", "true", "~~~"],
  ["a command that shall stay", "<!-- test: stays until one -->", "~~~sh", "echo one", "~~~"],
  [
    "a port that a document does not show",
    "~~~console",
    "$ echo http://127.0.0.1:53551",
    "http://127.0.0.1:53550",
    "~~~",
  ],
  ["a variable of another terminal", "~~~sh", "a=1", "~~~", "<!-- test: in two -->", "~~~sh", 'test "$a" = 1', "~~~"],
  ["a block that nothing is said about", "~~~json", "{}", "~~~"],
  ["a block without a language", "~~~", "one", "~~~"],
  ["a skip without a reason", "<!-- test: skip -->", "~~~json", "{}", "~~~"],
  ["a comment that is not understood", "<!-- test: sometimes -->", "~~~sh", "true", "~~~"],
  ["another passage than the file's", "<!-- test: part of LICENSE -->", "~~~txt", "END OF TERMS", "~~~"],
  ["a passage of no file", "<!-- test: part of NONE -->", "~~~txt", "1", "~~~"],
  ["a comment without a block", "<!-- test: fails -->", "", "text"],
  ["a file that git would see", "~~~sh", "echo one > secret.txt", "~~~"],
  ["a change of a file of the clone", "~~~sh", "echo one > examples/genesis.json", "~~~"],
  ["a path of the machine", "~~~sh", "echo one >/etc/gatehouse.test", "~~~"],
  ["a program that changes the machine", "~~~sh", "apt-get --version", "~~~"],
  ["a script that is not there", "~~~sh", "npm run fly", "~~~"],
] as const) {
  test(`a document fails for ${what}`, async (t) => {
    const { failures } = await runDocument(t, page(...lines), /git|change/.test(what) ? undefined : sandbox);
    t.is(failures.length, 1, failures.join("\n"));
  });
}

function name(...digits: readonly string[]): string {
  return digits.map((digit) => `0x${digit.repeat(64)}`).join(" ");
}

test("a document passes with what may vary", async (t) => {
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
    "<!-- test: skip, it is a picture -->",
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
    skipped: ["16: it is a picture", "20: no-such-program is not installed"],
    commands: 5,
  });
});

test("what stays is stopped, and must end well", async (t) => {
  const stays = (command: string): string =>
    page("<!-- test: in server, stays until up -->", "~~~sh", command, "~~~", "<!-- test: stop server -->");
  const { failures } = await runDocument(t, stays("trap 'exit 0' INT; echo up; while :; do sleep 0.1; done"), sandbox);
  t.deepEqual(failures, ["0: It ends the shell:\nup\n"]);
  const polite = `node -e 'process.on("SIGINT", () => process.exit(CODE)); console.log("up"); setInterval(() => 0, 99)'`;
  t.deepEqual((await runDocument(t, stays(polite.replace("CODE", "0")), sandbox)).failures, []);
  t.regex((await runDocument(t, stays(polite.replace("CODE", "7")), sandbox)).failures.join(), /ends with 7/);
});
