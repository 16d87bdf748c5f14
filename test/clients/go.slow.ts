/**
 * The Go client of the examples, with stubs generated as its README says. It is built from packages of Debian, whose
 * grpc-go is old. A build with packages of the module proxy does not need the tag `oldgrpc`.
 */
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type ForeignProgram, startProgram, testExamples } from "../helpers/nodes/foreign.js";
import { run as runProgram } from "../helpers/process/programs.js";
import { cleanEnvironment } from "../helpers/nodes/run-cli.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { isInstalled, succeeds, testUnless, whyNotInstalled } from "../helpers/nodes/when.js";

const packages = "/usr/share/gocode";
const testGo = testUnless(
  whyNotInstalled({
    "golang-go": isInstalled("go"),
    "protobuf-compiler": isInstalled("protoc"),
    "protoc-gen-go": isInstalled("protoc-gen-go"),
    "protoc-gen-go-grpc": isInstalled("protoc-gen-go-grpc"),
    "golang-google-grpc-dev": succeeds("test", "-d", `${packages}/src/google.golang.org/grpc`),
    "golang-google-protobuf-dev": succeeds("test", "-d", `${packages}/src/google.golang.org/protobuf`),
  }),
);

let out = "";

testGo.before(async (t) => {
  t.timeout(10 * 60_000);
  out = await mkdtemp(join(tmpdir(), "gatehouse-go-"));
  const client = join(out, "src/example.com/client");
  await mkdir(join(out, "src/example.com"), { recursive: true });
  await cp("examples/go", client, { recursive: true });
  await runProgram(resolve("examples/go/generate.sh"), [join(out, "src/gatehouse.example/contract")]);
  const env = cleanEnvironment({ GO111MODULE: "off", GOPATH: `${out}:${packages}` });
  const build = ["build", "-tags", "oldgrpc", "-o", `${out}/`, "./vectors", "./write"];
  await runProgram("go", build, { cwd: client, env });
});

testGo.after(() => rm(out, { recursive: true, force: true }));

const run = (t: Teardown, name: string, ...args: readonly string[]): ForeignProgram =>
  startProgram(t, join(out, name), args);

testExamples(testGo, "Go", ["write", "vectors"], run);
