#!/usr/bin/env python3
"""Prints the events of the chain, and resumes after the last one: watch.py HOST:PORT CURSORFILE [KEYFILE]"""

import os
import sys
import time

import grpc

from details import details
from gatehouse.chain.v1 import chain_pb2, chain_pb2_grpc
from gatehouse.event.v1 import event_pb2, event_pb2_grpc

KINDS = [event_pb2.EVENT_KIND_TRANSACTION, event_pb2.EVENT_KIND_PROGRAM, event_pb2.EVENT_KIND_BLOCK]
MAX_WAIT_S = 10
# Pings detect a lost connection, because an idle chain sends nothing either.
OPTIONS = [
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Open a new connection each time, without the backoff of a lost one.
    ("grpc.use_local_subchannel_pool", 1),
]


def read_cursor(path):
    """Returns the cursor of the last event; empty to start with the next event."""
    try:
        with open(path) as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def write_cursor(path, cursor):
    """Writes the file atomically, so that a killed process leaves the old or the new cursor."""
    with open(f"{path}.new", "w") as file:
        file.write(cursor)
    os.replace(f"{path}.new", path)


def enum_name(enum, value):
    """Returns created for PROGRAM_CHANGE_CREATED."""
    return enum.Name(value).split("_")[-1].lower() if value in enum.values() else str(value)


def describe(message):
    kind = message.WhichOneof("event")
    event = getattr(message, kind)
    if kind == "block":
        return f"{kind:<12} {event.hash}"
    if kind == "program":
        return f"{kind:<12} {event.storage_address} {enum_name(event_pb2.ProgramChange, event.change)}"
    outcome = "withheld" if event.withheld else enum_name(event_pb2.TransactionOutcome, event.outcome)
    return f"{kind:<12} {event.hash} {outcome}"


def sign_call(channel, key):
    """Returns identity headers, valid for five minutes. A stream that has started continues after that."""
    if key is None:
        return None
    from signing import identity_headers

    # In a real client, use a constant for the network.
    head = chain_pb2_grpc.ChainServiceStub(channel).GetHead(chain_pb2.GetHeadRequest(), timeout=10)
    return identity_headers(key, head.genesis_hash)


def watch(channel, cursor_file, key):
    """Prints each event once, until the stream ends."""
    request = event_pb2.WatchRequest(kinds=KINDS, **{"from": read_cursor(cursor_file)})
    # No timeout, because it would limit the whole stream.
    for message in event_pb2_grpc.EventServiceStub(channel).Watch(request, metadata=sign_call(channel, key)):
        if not message.HasField("progress"):
            print(f"{message.cursor:<8} {describe(message)}", flush=True)
        # Store the cursor after the event is printed: a process killed in between repeats it, but misses none.
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
            cause, min_wait = "the node shuts down", 0
        except grpc.RpcError as error:
            reason, min_wait = details(error)
            is_lost = reason is None and error.code() != grpc.StatusCode.UNIMPLEMENTED
            if min_wait is None and not is_lost:
                raise
            cause = error.details()
        # Exponential backoff, but at least the delay that the node demands.
        wait = 1 if read_cursor(cursor_file) != before else min(2 * wait, MAX_WAIT_S)
        print(f"lost: {cause}", file=sys.stderr, flush=True)
        time.sleep(max(wait, min_wait or 0))


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
