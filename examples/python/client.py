#!/usr/bin/env python3
"""A gRPC client of a Gatehouse node. It needs the stubs that generate.sh generates."""

import argparse
import sys
from datetime import datetime, timezone
from pathlib import Path

try:
    import grpc
except ImportError:
    sys.exit("The package grpcio is missing (on Debian: python3-grpcio).")

EXAMPLES = """\
examples:
  client.py 127.0.0.1:53550                       version, health, latest block
  client.py 127.0.0.1:53550 --address stor-...    a storage program as well
  client.py 127.0.0.1:53550 --key alice.key       the programs of the key's owner, including private ones
  client.py 127.0.0.1:53550 --watch 3             current health, and its next three changes
  client.py node.example:443 --ca roots.pem       over TLS

The exit code is 0 when every call succeeded.
"""


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Prints the version, health, latest block and stored programs of a node.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="HOST:PORT", help="the RPC port of the node, by default 53550")
    parser.add_argument("--address", metavar="ADDRESS", help="read this storage program: stor- and 40 hex digits")
    parser.add_argument(
        "--key",
        metavar="FILE",
        type=Path,
        help="sign reads with this Ed25519 key (PEM, PKCS #8), as `gatehouse keygen --out FILE` writes it",
    )
    parser.add_argument(
        "--network",
        metavar="HASH",
        help="genesis hash of the network to sign for; by default that of the node",
    )
    parser.add_argument("--watch", metavar="N", type=int, default=0, help="print health until it has changed N times")
    parser.add_argument(
        "--ca", metavar="FILE", type=Path, help="use TLS, and trust the certificates in this file (PEM)"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=10, help="limit for one response; default %(default)s"
    )
    parser.add_argument(
        "--stubs",
        metavar="DIR",
        type=Path,
        default=Path(__file__).parent / "gen",
        help="directory of the generated stubs; default: gen next to this file",
    )
    return parser.parse_args()


arguments = parse_arguments()
# The stubs import each other by their proto paths, so their directory has to be on the module path.
sys.path.insert(0, str(arguments.stubs))
try:
    from google.rpc import error_details_pb2, status_pb2

    from gatehouse.chain.v1 import chain_pb2, chain_pb2_grpc
    from gatehouse.health.v1 import health_pb2, health_pb2_grpc
    from gatehouse.info.v1 import info_pb2, info_pb2_grpc
    from gatehouse.storage.v1 import storage_pb2, storage_pb2_grpc
except ImportError as error:
    sys.exit(f"There are no stubs in {arguments.stubs} ({error}); run generate.sh.")


class Caller:
    """Holds a private key, and signs the identity headers of calls."""

    def __init__(self, path):
        try:
            import signing
        except ImportError:
            sys.exit("--key needs the package cryptography (on Debian: python3-cryptography).")
        try:
            self._key = signing.load_key(path.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            sys.exit(f"{path} cannot be read as a private key: {error}")
        self._signing = signing
        self.public_key = signing.public_key(self._key)

    def metadata(self, network):
        return self._signing.identity_headers(self._key, network)


def enum_name(enum, value):
    """Returns the name of an enum value without the common prefix of its enum: ok for HEALTH_STATUS_OK."""
    try:
        name = enum.Name(value)
    except ValueError:
        return str(value)  # A newer node may send a new value.
    prefix = len(enum.Name(0)) - len("UNSPECIFIED")
    return name[prefix:].lower()


def date(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds")


def show(label, text):
    # Flush, because --watch output is read while the program runs.
    print(f"{label:<10}{text}", flush=True)


def show_error(what, error):
    """Prints a failed call: its message, the gRPC code, and the reason from the error details."""
    show(what, f"failed: {error.details()}")
    show("  code", error.code().name)
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    if packed is None:
        # The error is not from an rpc: the connection failed, for example, or the method is unknown.
        return
    for detail in status_pb2.Status.FromString(packed).details:
        info = error_details_pb2.ErrorInfo()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            show("  reason", f"{info.reason} (domain {info.domain})")
        elif detail.Unpack(retry):
            show("  retry", f"in {retry.retry_delay.ToTimedelta().total_seconds():g} s")


def health_line(snapshot):
    accepting = "accepting" if snapshot.accepting else "not accepting"
    return f"{enum_name(health_pb2.HealthStatus, snapshot.status)}, {accepting}"


def subsystem_line(name, subsystem):
    line = f"{name} {enum_name(health_pb2.SubsystemStatus, subsystem.status)}"
    if subsystem.HasField("port"):
        line += f", port {subsystem.port}"
    if subsystem.HasField("last_error"):
        line += f", last error: {subsystem.last_error.message}"
    return line


def read_version(channel):
    info = info_pb2_grpc.InfoServiceStub(channel)
    show("version", info.GetVersion(info_pb2.GetVersionRequest(), timeout=arguments.timeout).version)


def read_health(channel):
    health = health_pb2_grpc.HealthServiceStub(channel)
    snapshot = health.GetHealth(health_pb2.GetHealthRequest(), timeout=arguments.timeout).snapshot
    show("health", f"{health_line(snapshot)}, up {snapshot.uptime_s:.1f} s")
    for name, subsystem in sorted(snapshot.subsystems.items()):
        show("", subsystem_line(name, subsystem))


def read_head(channel):
    chain = chain_pb2_grpc.ChainServiceStub(channel)
    head = chain.GetHead(chain_pb2.GetHeadRequest(), timeout=arguments.timeout)
    show("head", f"block {head.number}, {head.hash}, {date(head.timestamp_ms)}")


def sign_call(channel, caller):
    """Returns the identity headers of a call, for --network or for the network of the node; None without a key."""
    if caller is None:
        return None
    network = arguments.network
    if network is None:
        chain = chain_pb2_grpc.ChainServiceStub(channel)
        network = chain.GetHead(chain_pb2.GetHeadRequest(), timeout=arguments.timeout).genesis_hash
    return caller.metadata(network)


def read_program(channel, caller):
    storage = storage_pb2_grpc.StorageServiceStub(channel)
    program = storage.GetProgram(
        storage_pb2.GetProgramRequest(storage_address=arguments.address),
        timeout=arguments.timeout,
        metadata=sign_call(channel, caller),
    )
    show("program", f"{program.program_name}, of {program.owner}")
    show("  access", enum_name(storage_pb2.AccessMode, program.acl.mode))
    show("  changed", date(program.updated_at.ToMilliseconds()))
    show("  data", program.data if program.HasField("data") else "none")


def list_own_programs(channel, caller):
    storage = storage_pb2_grpc.StorageServiceStub(channel)
    response = storage.ListProgramsByOwner(
        storage_pb2.ListProgramsByOwnerRequest(owner=caller.public_key),
        timeout=arguments.timeout,
        metadata=sign_call(channel, caller),
    )
    show("own", f"{response.count} programs of {caller.public_key}")
    for program in response.programs:
        show("", f"{program.storage_address} {program.program_name}, {program.size_bytes} bytes")


def watch_health(channel):
    """Prints the current health, and each change with its changed subsystems."""
    health = health_pb2_grpc.HealthServiceStub(channel)
    before = None
    number = 0
    # No timeout, because it would limit the whole stream.
    responses = health.WatchHealth(health_pb2.WatchHealthRequest())
    for snapshot in (response.snapshot for response in responses):
        subsystems = {name: subsystem_line(name, state) for name, state in snapshot.subsystems.items()}
        now = (health_line(snapshot), subsystems)
        if before is None:
            show("watch", now[0])
        elif now != before:
            number += 1
            show(f"change {number}", now[0])
            for name, line in sorted(subsystems.items()):
                if line != before[1].get(name):
                    show("", line)
        # Otherwise only values changed that are not printed, such as the number of pending transactions.
        before = now
        if number == arguments.watch:
            responses.cancel()
            return
    show("watch", "the node has ended the stream; it shuts down")


def connect():
    if arguments.ca is None:
        return grpc.insecure_channel(arguments.target)
    try:
        roots = arguments.ca.read_bytes()
    except OSError as error:
        sys.exit(f"--ca: {error}")
    return grpc.secure_channel(arguments.target, grpc.ssl_channel_credentials(roots))


def main():
    caller = None if arguments.key is None else Caller(arguments.key)
    steps = [("version", read_version), ("health", read_health), ("head", read_head)]
    if arguments.address is not None:
        steps.append(("program", lambda channel: read_program(channel, caller)))
    if caller is not None:
        steps.append(("own", lambda channel: list_own_programs(channel, caller)))
    if arguments.watch > 0:
        steps.append(("watch", watch_health))
    exit_code = 0
    with connect() as channel:
        for label, step in steps:
            try:
                step(channel)
            except grpc.RpcError as error:
                show_error(label, error)
                exit_code = 1
    return exit_code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
