/** The configuration of Envoy, compared with the defaults and health of a node. */
import test from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { HealthCheckResponse_ServingStatus as Serving, Health } from "../../gen/health/v1/health_pb.js";
import { makeCertificate, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { defaults } from "../helpers/process/deployment.js";
import { run } from "../helpers/process/programs.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { ask } from "../helpers/wire/plain-client.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

/** Returns the values at a path of keys, through all items of lists. */
function at(value: unknown, path: string): unknown[] {
  return path
    .split(".")
    .reduce<unknown[]>((found, key) => found.flatMap((item) => (item as Record<string, unknown>)[key]), [value]);
}

interface Cluster {
  readonly name: string;
  readonly health_checks: readonly {
    readonly unhealthy_threshold: number;
    readonly grpc_health_check?: { readonly service_name: string };
    readonly http_health_check?: { readonly path: string };
  }[];
}

const text = await readFile("deploy/envoy/envoy.yaml", "utf8");
const resources = (parse(text) as { readonly static_resources: object }).static_resources;
const clusters = at(resources, "clusters") as Cluster[];
const [manager] = at(resources, "listeners.filter_chains.filters.typed_config");

test("routes gRPC over HTTP/2 and the rest over HTTP/1.1, to one port of the node", (t) => {
  const routes = at(manager, "route_config.virtual_hosts.routes");
  t.deepEqual(
    routes.map((route) => [at(route, "match.grpc")[0] !== undefined, ...at(route, "route.cluster")]),
    [
      [true, "gatehouse_grpc"],
      [false, "gatehouse_http"],
    ],
  );
  const protocols = clusters.map((cluster) => {
    const options = Object.values(at(cluster, "typed_extension_protocol_options")[0]!);
    return [cluster.name, ...options.flatMap((option) => Object.keys(at(option, "explicit_http_config")[0]!))];
  });
  t.deepEqual(protocols, [
    ["gatehouse_grpc", "http2_protocol_options"],
    ["gatehouse_http", "http_protocol_options"],
  ]);
  const ports = "load_assignment.endpoints.lb_endpoints.endpoint.address.socket_address.port_value";
  for (const cluster of clusters) {
    t.deepEqual(at(cluster, ports), [defaults.rpcPort]);
  }
});

test("forwards the address of the client, but not its Forwarded header", (t) => {
  t.deepEqual(at(manager, "use_remote_address"), [true]);
  t.deepEqual(at(manager, "route_config.virtual_hosts.request_headers_to_remove"), ["forwarded"]);
});

test("the health checks pass on a ready node, and fail on a dormant one", async (t) => {
  const passes = async (port: number, { health_checks: checks }: Cluster): Promise<boolean[]> =>
    await Promise.all(
      checks.map(async ({ grpc_health_check: overGrpc, http_health_check: overHttp }) => {
        if (overGrpc === undefined) {
          return (await ask(port, overHttp!.path)).status === 200;
        }
        const client = connectGrpc(port);
        t.teardown(() => client.close());
        const { status } = await client.call(Health.method.check, { service: overGrpc.service_name });
        return status === Serving.SERVING;
      }),
    );
  const [ready, dormant] = [await startMember(t), await startTestNode(t)];
  for (const cluster of clusters) {
    t.deepEqual(await passes(ready.port, cluster), [true], cluster.name);
    t.deepEqual(await passes(dormant.port, cluster), [false], cluster.name);
    t.true(cluster.health_checks.every(({ unhealthy_threshold: threshold }) => threshold > 1));
  }
  t.true(clusters.some(({ health_checks: [check] }) => check!.grpc_health_check !== undefined));
});

const testValidated = testUnless(whyNot("envoy", "--version"));

testValidated("envoy --mode validate accepts the configuration", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await makeCertificate(dir);
  const path = join(dir, "envoy.yaml");
  await writeFile(
    path,
    text.replace("/etc/envoy/tls/gatehouse.crt", cert).replace("/etc/envoy/tls/gatehouse.key", key),
  );
  await t.notThrowsAsync(run("envoy", ["--mode", "validate", "-c", path]));
});
