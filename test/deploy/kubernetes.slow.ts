/** The Kubernetes manifests, compared with the options, routes and health service of a node, and run as a network. */
import test from "ava";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { HealthCheckResponse_ServingStatus as Serving, Health } from "../../gen/health/v1/health_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { loadNodeKey } from "../../src/base/crypto/node-key.js";
import { readPeersFile } from "../../src/config/input-files.js";
import { startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { configOf, defaults } from "../helpers/process/deployment.js";
import { run } from "../helpers/process/programs.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { ask } from "../helpers/wire/plain-client.js";
import { cleanEnvironment, cliPath, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string } | null;
  readonly grpc?: { readonly port: number; readonly service: string };
  readonly failureThreshold: number;
}
interface Container extends Readonly<Record<"startupProbe" | "livenessProbe" | "readinessProbe", Probe>> {
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: Readonly<Record<string, unknown>>;
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly podSelector?: object;
    readonly ingress?: readonly {
      readonly from?: readonly Readonly<Record<string, object>>[];
      readonly ports: readonly { readonly port: string }[];
    }[];
    readonly selector: Readonly<Record<string, unknown>>;
    readonly ports: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[];
    readonly serviceName: string;
    readonly replicas: number;
    readonly podManagementPolicy: string;
    readonly template: {
      readonly metadata: Readonly<Record<"labels" | "annotations", Readonly<Record<string, string>>>>;
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly enableServiceLinks: boolean;
        readonly securityContext: Readonly<Record<string, unknown>>;
        readonly topologySpreadConstraints: readonly object[];
        readonly initContainers: readonly Container[];
        readonly containers: readonly Container[];
        readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[];
      };
    };
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
  };
}

const base = "deploy/kubernetes/base";
const overlay = "deploy/kubernetes/grpc-probes";

function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) {
      throw document.errors[0]!;
    }
    return document.toJS() as Manifest;
  });
}

const { resources } = parse(await readFile(join(base, "kustomization.yaml"), "utf8")) as { resources: string[] };
const manifests = (
  await Promise.all(resources.map(async (file) => parseManifests(await readFile(join(base, file), "utf8"))))
).flat();
const find = (kind: string, name: string, among = manifests): Manifest =>
  among.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)!;

const statefulSet = find("StatefulSet", "gatehouse");
const network = find("ConfigMap", "gatehouse-network");
const pod = statefulSet.spec.template.spec;
const [container] = pod.containers as [Container];
const patch = parse(await readFile(join(overlay, "probes.yaml"), "utf8")) as Manifest;
const [patched] = patch.spec.template.spec.containers as [Container];

const podName = (ordinal: number): string => `${statefulSet.metadata.name}-${ordinal}`;

/** The environment of the node of a pod. */
function environmentOf(ordinal: number): Record<string, string> {
  const options = container.env.filter(({ name }) => name !== "POD_NAME");
  return Object.fromEntries(
    options.map(({ name, value }) => [name, value!.replaceAll("$(POD_NAME)", podName(ordinal))]),
  );
}

test("each variable is a valid option, and names mounted files", (t) => {
  const config = configOf(environmentOf(0));
  t.true(config.allowPrivatePeers);
  const mountOf = (path: string) =>
    container.volumeMounts.find(({ mountPath }) => path === mountPath || path.startsWith(`${mountPath}/`));
  for (const file of [config.genesisFile!, config.peersFile!]) {
    const { name, mountPath } = mountOf(file)!;
    t.is(pod.volumes.find((volume) => volume.name === name)!.configMap!.name, network.metadata.name);
    t.true(file.slice(mountPath.length + 1) in network.data, file);
  }
  const { name, mountPath } = mountOf(config.dataDir)!;
  t.true(statefulSet.spec.volumeClaimTemplates.some(({ metadata }) => metadata.name === name));
  t.not(config.dataDir, mountPath, "Kubernetes sets the mode of the root of the volume.");
  t.is(pod.securityContext["fsGroupChangePolicy"], "OnRootMismatch");
  t.false(pod.enableServiceLinks, "A Service named gatehouse-rpc would set GATEHOUSE_RPC_PORT.");
});

test("ports, selectors and names match each other and the defaults of the node", async (t) => {
  const ports = Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]));
  t.deepEqual(ports, { rpc: defaults.rpcPort, omni: defaults.omniPort, metrics: defaults.metricsPort });
  const services = manifests.filter(({ kind }) => kind === "Service");
  t.is(services.length, 2);
  for (const { spec } of services) {
    t.like(statefulSet.spec.template.metadata.labels, spec.selector);
    for (const { name, port, targetPort } of spec.ports) {
      t.is(targetPort, name);
      t.is(ports[targetPort], port);
    }
  }
  const { serviceName, replicas } = statefulSet.spec;
  t.like(find("Service", serviceName).spec, { clusterIP: "None", publishNotReadyAddresses: true });
  t.is(statefulSet.spec.podManagementPolicy, "Parallel");

  const dir = await temporaryDirectory(t);
  t.is(replicas, (JSON.parse(network.data["peers.json"]!) as unknown[]).length);
  await writeFile(join(dir, "peers.json"), network.data["peers.json"]!);
  const peers = await readPeersFile(join(dir, "peers.json"));
  t.deepEqual(
    peers.map(({ url }) => url),
    Array.from({ length: replicas }, (_, ordinal) => configOf(environmentOf(ordinal)).omniUrl!),
  );
  t.is(new URL(peers[0]!.url).hostname, `${podName(0)}.${serviceName}`);
});

test("limits disruption to one pod, spreads the pods over machines, and restricts the callers of each port", (t) => {
  const { labels, annotations } = statefulSet.spec.template.metadata;
  const budget: object = find("PodDisruptionBudget", "gatehouse").spec;
  t.deepEqual(budget, { maxUnavailable: 1, selector: { matchLabels: labels } });
  const [spread] = pod.topologySpreadConstraints;
  t.like(spread, { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: labels } });

  const { spec: policy } = find("NetworkPolicy", "gatehouse");
  t.deepEqual(policy.podSelector, { matchLabels: labels });
  const callers = new Map(policy.ingress!.flatMap(({ from, ports }) => ports.map(({ port }) => [port, from] as const)));
  t.deepEqual([...callers.keys()].sort(), container.ports.map(({ name }) => name).sort());
  t.is(callers.get("rpc"), undefined, "all callers");
  t.deepEqual(callers.get("omni"), [{ podSelector: { matchLabels: labels } }]);
  t.deepEqual(Object.keys(callers.get("metrics")![0]!), ["namespaceSelector"]);

  t.true(configOf(environmentOf(0)).metricsEnabled);
  t.is(annotations["prometheus.io/port"], String(defaults.metricsPort));
});

test("uses the image of this version, without root and with a read-only file system", async (t) => {
  const { version } = JSON.parse(await readFile("package.json", "utf8")) as { version: string };
  const [uid, gid] = /^USER (\d+):(\d+)$/m
    .exec(await readFile("deploy/Dockerfile", "utf8"))!
    .slice(1)
    .map(Number);
  t.like(pod.securityContext, { runAsNonRoot: true, runAsUser: uid, runAsGroup: gid, fsGroup: gid });
  for (const { image, securityContext } of [...pod.initContainers, ...pod.containers]) {
    t.is(image, `gatehouse:${version}`);
    t.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  }
});

/** Returns true if a probe passes. */
async function passes(t: Teardown, { httpGet, grpc }: Probe, { port }: Pick<TestNode, "port">): Promise<boolean> {
  if (grpc === undefined) {
    return (await ask(port, httpGet!.path)).status === 200;
  }
  const client = connectGrpc(port);
  t.teardown(() => client.close());
  return (await client.call(Health.method.check, { service: grpc.service })).status === Serving.SERVING;
}

for (const [variant, { startupProbe, livenessProbe, readinessProbe }] of [
  ["HTTP", container],
  ["gRPC", patched],
] as const) {
  test(`the probes over ${variant} on a healthy, rate-limited, failing and dormant node`, async (t) => {
    const all = [startupProbe, livenessProbe, readinessProbe];
    for (const { httpGet, grpc } of all) {
      t.is(grpc === undefined, variant === "HTTP");
      if (grpc === undefined) {
        t.is(container.ports.find(({ name }) => name === httpGet!.port)!.containerPort, defaults.rpcPort);
      } else {
        t.is(grpc.port, defaults.rpcPort);
        t.is(httpGet, null, "The overlay removes the HTTP probe of the base.");
      }
    }
    const results = async (node: TestNode) => await Promise.all(all.map((probe) => passes(t, probe, node)));

    const node = await startMember(t, { "rate-limit": "1", "rate-limit-exempt": "192.0.2.1" });
    await until(async () => (await ask(node.port, "/info")).status === 429);
    t.deepEqual(await results(node), [true, true, true]);
    node.subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message: "failed by the test" } });
    const [, isAlive, isReady] = await results(node);
    t.true(isAlive);
    t.false(isReady);

    t.deepEqual(await results(await startTestNode(t)), [true, true, false]);
    t.true(readinessProbe.failureThreshold > 1);
  });
}

test("the init container copies the authority's key to the first node once", async (t) => {
  const dir = await temporaryDirectory(t);
  const { dataDir } = configOf(environmentOf(0));
  const [{ args }] = pod.initContainers as [Container];
  await mkdir(join(dir, "authority"));
  t.true(args[0]!.includes(dataDir) && args[0]!.includes("/authority/"));
  const script = args[0]!.replaceAll("/authority/", `${dir}/authority/`);
  const runAs = (ordinal: number): void => {
    const env = { POD_NAME: podName(ordinal), PATH: "/usr/bin:/bin" };
    const { status, stderr } = spawnSync("sh", ["-euc", script.replaceAll(`${dataDir}/`, `${dir}/${ordinal}/node/`)], {
      env,
      encoding: "utf8",
    });
    t.is(status, 0, stderr);
  };
  const keyOf = (ordinal: number): string => join(dir, `${ordinal}/node/identity.key`);

  runAs(0);
  t.false(existsSync(keyOf(0)), "There is no Secret.");
  await writeKey(join(dir, "authority/identity.key"), testKey(1));
  runAs(1);
  t.false(existsSync(keyOf(1)));
  runAs(0);
  t.is((await loadNodeKey(keyOf(0))).publicKey, testKey(1).publicKey);

  await writeKey(join(dir, "authority/identity.key"), testKey(2));
  runAs(0);
  t.is((await loadNodeKey(keyOf(0))).publicKey, testKey(1).publicKey, "A key is never overwritten.");
});

test("a node with an open request stops within the grace period, its shutdown delay included", async (t) => {
  const { shutdownDelayMs } = configOf(environmentOf(0));
  t.true(shutdownDelayMs > 0);
  const flags = ["--shutdown-delay", String(shutdownDelayMs / 1_000)];
  const node = await startNodeProcess(t, await temporaryDirectory(t), flags);
  const socket = connect(node.port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
  const [response] = (await once(socket, "data")) as [Buffer];
  t.regex(response.toString(), /^HTTP\/1\.1 100 /);
  const unit = await readFile("deploy/systemd/gatehouse.service", "utf8");
  const leftS = Math.min(pod.terminationGracePeriodSeconds, Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)![1]));
  // Kills the node if it has not stopped in time.
  const killer = setTimeout(() => node.child.kill("SIGKILL"), leftS * 1000);
  t.teardown(() => clearTimeout(killer));
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});

const testRendered = testUnless(whyNot("kubectl", "kustomize", "--help"));

testRendered("the rendered variants differ only in their probes", async (t) => {
  const render = async (dir: string) => parseManifests((await run("kubectl", ["kustomize", dir])).stdout);
  const [plain, grpc] = [await render(base), await render(overlay)];
  t.is(plain.length, manifests.length);
  const containerOf = (rendered: Manifest[]): Container =>
    find("StatefulSet", "gatehouse", rendered).spec.template.spec.containers[0]!;
  const target = containerOf(grpc) as unknown as Record<string, unknown>;
  for (const name of ["startupProbe", "livenessProbe", "readinessProbe"] as const) {
    t.deepEqual(containerOf(plain)[name], container[name]);
    const { httpGet, ...expected } = patched[name];
    t.is(httpGet, null);
    t.deepEqual(target[name], expected);
    target[name] = container[name];
  }
  t.deepEqual(grpc, plain);
});

/** Arguments of unshare that run a command in its own network namespace, where the fixed ports are free. */
const inNetwork = ["--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc"];
const testNetworked = testUnless(
  whyNot("unshare", ...inNetwork, "ip link set lo up && mount --bind /dev/null /etc/hosts"),
);

testNetworked("nodes with these options, files and names find each other and are ready", async (t) => {
  const dir = await temporaryDirectory(t);
  const ordinals = Array.from({ length: statefulSet.spec.replicas }, (_, ordinal) => ordinal);
  const addressOf = (ordinal: number): string => `127.0.1.${ordinal + 1}`;
  const hosts = ordinals.map(
    (ordinal) => `${addressOf(ordinal)} ${podName(ordinal)}.${statefulSet.spec.serviceName}\n`,
  );
  await writeFile(join(dir, "hosts"), hosts.join(""));
  // Only the first node is listed, so the others must learn of each other from it.
  const [first] = JSON.parse(network.data["peers.json"]!) as unknown[];
  await writeFile(join(dir, "peers.json"), JSON.stringify([first]));
  await writeFile(join(dir, "genesis.json"), network.data["genesis.json"]!);
  const startLines = ordinals.map((ordinal) => {
    const podEnv = environmentOf(ordinal);
    const env = {
      ...podEnv,
      GATEHOUSE_HOST: addressOf(ordinal),
      GATEHOUSE_DATA_DIR: join(dir, String(ordinal)),
      GATEHOUSE_GENESIS: podEnv["GATEHOUSE_GENESIS"]!.replace(/^.*\//, `${dir}/`),
      GATEHOUSE_PEERS: podEnv["GATEHOUSE_PEERS"]!.replace(/^.*\//, `${dir}/`),
      GATEHOUSE_LOOP_INTERVAL: "0.2",
      GATEHOUSE_PORT_DRIFT: "deny",
    };
    const assignments = Object.entries(env).map(([name, value]) => `'${name}=${value}'`);
    return `env ${assignments.join(" ")} "$0" "${cliPath}" start >"${dir}/${ordinal}.log" 2>&1 &`;
  });
  const urls = ordinals.map((ordinal) => configOf(environmentOf(ordinal)).publicUrl!);
  const wait = `
    const readState = async (url) => {
      const { status } = await fetch(url + "${container.readinessProbe.httpGet!.path}");
      const peers = await (await fetch(url + "/peerlist")).json();
      return { status, verified: peers.filter((peer) => peer.verification.status).map((peer) => peer.connection.string) };
    };
    const isDone = ({ status, verified }) => status === 200 && verified.length >= ${urls.length - 1};
    let seen = [];
    for (const end = Date.now() + 60_000; Date.now() < end && (seen.length === 0 || !seen.every(isDone)); ) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      seen = await Promise.all(${JSON.stringify(urls)}.map(readState)).catch(() => []);
    }
    console.log(JSON.stringify(seen));`;
  const script = [
    `mount --bind "${dir}/hosts" /etc/hosts`,
    "ip link set lo up",
    ...startLines,
    `exec "$0" --input-type=module -e '${wait}'`,
  ].join("\n");
  const env = cleanEnvironment() as NodeJS.ProcessEnv;
  const { stdout } = await run("unshare", [...inNetwork, script, process.execPath], { env });
  const logs = await Promise.all(ordinals.map((ordinal) => readFile(join(dir, `${ordinal}.log`), "utf8")));
  const seen = JSON.parse(stdout) as { status: number; verified: string[] }[];
  t.deepEqual(
    seen.map(({ status, verified }) => ({ status, verified: verified.sort() })),
    urls.map((own) => ({ status: 200, verified: urls.filter((url) => url !== own) })),
    logs.join("\n"),
  );
});
