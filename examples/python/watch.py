#!/usr/bin/env python3
"""Prints what happens on the chain, and goes on where it was: watch.py HOST:PORT CURSORFILE [KEYFILE]"""

import os
import sys
import time

import grpc

from details import details
from gatehouse.chain.v1 import chain_pb2, chain_pb2_grpc
from gatehouse.event.v1 import event_pb2, event_pb2_grpc

KINDS = [event_pb2.EVENT_KIND_TRANSACTION, event_pb2.EVENT_KIND_PROGRAM, event_pb2.EVENT_KIND_BLOCK]
LONGEST_WAIT_S = 10
# An idle chain says nothing, and neither does a machine that is gone: pings tell them apart.
OPTIONS = [
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Each connection is begun anew: nothing waits for one that was lost.
    ("grpc.use_local_subchannel_pool", 1),
]


def read_cursor(path):
    """Where to go on; nothing for what comes from now on."""
    try:
        with open(path) as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def write_cursor(path, cursor):
    """Whole or not at all, whenever this is killed."""
    with open(f"{path}.new", "w") as file:
        file.write(cursor)
    os.replace(f"{path}.new", path)


def word(enum, value):
    """created for PROGRAM_CHANGE_CREATED."""
    return enum.Name(value).split("_")[-1].lower() if value in enum.values() else str(value)


def describe(message):
    kind = message.WhichOneof("event")
    event = getattr(message, kind)
    if kind == "block":
        return f"{kind:<12} {event.hash}"
    if kind == "program":
        return f"{kind:<12} {event.storage_address} {word(event_pb2.ProgramChange, event.change)}"
    what = "withheld" if event.withheld else word(event_pb2.TransactionOutcome, event.outcome)
    return f"{kind:<12} {event.hash} {what}"


def prove(channel, key):
    """Metadata for a call: who calls, for the next five minutes. A stream that has begun goes on after them."""
    if key is None:
        return None
    from signing import identity_headers

    # Better a constant: the network that this client is for.
    head = chain_pb2_grpc.ChainServiceStub(channel).GetHead(chain_pb2.GetHeadRequest(), timeout=10)
    return identity_headers(key, head.genesis_hash)


def watch(channel, cursor_file, key):
    """Prints events until the stream ends, each once."""
    request = event_pb2.WatchRequest(kinds=KINDS, **{"from": read_cursor(cursor_file)})
    # No timeout: it would be one for the whole stream.
    for message in event_pb2_grpc.EventServiceStub(channel).Watch(request, metadata=prove(channel, key)):
        if not message.HasField("progress"):
            print(f"{message.cursor:<8} {describe(message)}", flush=True)
        # Once it is dealt with: whoever is killed in between is told of it again, and misses nothing.
        write_cursor(cursor_file, message.cursor)


def main(target, cursor_file, key_file=None):
    key = None
    if key_file is not None:
        from signing import load_key

        with open(key_file, "rb") as file:
            key = load_key(file.read())
    wait = 1
    while True:
        before = read_cursor(cursor_file)
        try:
            with grpc.insecure_channel(target, options=OPTIONS) as channel:
                watch(channel, cursor_file, key)
            why, least = "the node shuts down", 0
        except grpc.RpcError as error:
            reason, least = details(error)
            is_lost = reason is None and error.code() != grpc.StatusCode.UNIMPLEMENTED
            if least is None and not is_lost:
                raise
            why = error.details()
        # The longer it lasts, the longer it waits; and at least as long as the node says.
        wait = 1 if read_cursor(cursor_file) != before else min(2 * wait, LONGEST_WAIT_S)
        print(f"lost: {why}", file=sys.stderr, flush=True)
        time.sleep(max(wait, least or 0))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        reason = details(error)[0]
        print(f"{reason or error.code().name}: {error.details()}", file=sys.stderr)
        if reason == "PRUNED":
            print(f"Something was missed. Without {sys.argv[2]} it begins with what comes next.", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
