/** The C++ client of the examples, built as its README says, against a real node. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMember } from "../helpers/nodes/start-node.js";
import { type ForeignProgram, startProgram, testExamples } from "../helpers/nodes/foreign.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { isInstalled, succeeds, testUnless, whyNotInstalled } from "../helpers/nodes/when.js";
import { run as runProgram } from "../helpers/process/programs.js";

const testCpp = testUnless(
  whyNotInstalled({
    "g++": isInstalled("g++"),
    make: isInstalled("make"),
    "pkg-config": isInstalled("pkg-config"),
    "protobuf-compiler": isInstalled("protoc"),
    "protobuf-compiler-grpc": isInstalled("grpc_cpp_plugin"),
    "libgrpc++-dev": succeeds("pkg-config", "--exists", "grpc++"),
    "libprotobuf-dev": succeeds("pkg-config", "--exists", "protobuf"),
    "libssl-dev": succeeds("pkg-config", "--exists", "libcrypto"),
  }),
);

/** Stubs of protobuf 3.21, as in Debian and Ubuntu, can be compiled as one file, which saves most of the time. */
const canJoin = succeeds("pkg-config", "--atleast-version=3.21", "--max-version=3.21.99", "protobuf");
const joinFlags = canJoin ? ["JOINED=1"] : [];
let out = "";

testCpp.before(async (t) => {
  // The build takes 30 s on two idle cores.
  t.timeout(10 * 60_000);
  out = await mkdtemp(join(tmpdir(), "gatehouse-cpp-"));
  const make = ["-s", "-j2", "-C", "examples/cpp", `OUT=${out}`, ...joinFlags, "CXXFLAGS=-O0 -Wall -Wextra"];
  await runProgram("make", make);
});

testCpp.after(() => rm(out, { recursive: true, force: true }));

const run = (t: Teardown, name: string, ...args: readonly string[]): ForeignProgram =>
  startProgram(t, join(out, name), args);

testExamples(testCpp, "C++", ["client", "write", "watch", "vectors"], run);

testCpp("the C++ client prints the reason of an error", async (t) => {
  const { port } = await startMember(t);
  const { code, stdout } = await run(t, "client", `127.0.0.1:${port}`, "--block", "99").ended;
  t.is(code, 1);
  t.true(
    stdout.endsWith(
      "\nblock     failed: There is no such block yet.\n  code    5\n  reason  NOT_FOUND (domain gatehouse)\n",
    ),
    stdout,
  );
});

testCpp("the C++ client rejects unknown and invalid arguments", async (t) => {
  for (const [args, message] of [
    [[], /^usage: /],
    [["127.0.0.1:9", "--block", "-1"], /whole number/],
    [["127.0.0.1:9", "--watch"], /needs a value/],
    [["127.0.0.1:9", "--wotch", "1"], /"--wotch" is not understood/],
    [["127.0.0.1:9", "--ca", join(out, "none.pem")], /cannot be read/],
  ] as const) {
    const { code, stderr } = await run(t, "client", ...args).ended;
    t.is(code, 2);
    t.regex(stderr, message);
  }
});
