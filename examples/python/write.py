#!/usr/bin/env python3
"""Creates a storage program, waits for its block, and reads it back: write.py HOST:PORT KEYFILE NAME JSON"""

import sys
import time

import grpc

from details import details
from gatehouse.chain.v1 import block_pb2, chain_pb2, chain_pb2_grpc
from gatehouse.storage.v1 import operation_pb2, storage_pb2, storage_pb2_grpc
from signing import identity_headers, load_key, program_address, public_key, sign_transaction

LIFETIME_S = 120


def call(method, request, until, metadata=None):
    """Retries a call until it succeeds. Reads and the submission of one transaction may be repeated."""
    while True:
        try:
            return method(request, timeout=10, metadata=metadata)
        except grpc.RpcError as error:
            _, wait = details(error)
            if wait is None or time.time() + wait > until:
                raise
            time.sleep(wait)


def wait_for(chain, transaction_hash, until):
    """Waits until a block includes the transaction, and returns its number."""
    while True:
        state = call(chain.GetTransaction, chain_pb2.GetTransactionRequest(hash=transaction_hash), until)
        if state.status == chain_pb2.TRANSACTION_STATUS_INCLUDED:
            return state.block_number
        if state.status == chain_pb2.TRANSACTION_STATUS_REJECTED:
            sys.exit(f"rejected: {state.reason}")
        if time.time() > until:
            sys.exit(f"still pending: {transaction_hash}")
        time.sleep(0.25)


def main(target, key_file, name, document):
    with open(key_file, "rb") as file:
        key = load_key(file.read())
    with grpc.insecure_channel(target) as channel:
        chain = chain_pb2_grpc.ChainServiceStub(channel)
        now = time.time_ns() // 1_000_000
        until = time.time() + LIFETIME_S
        # In a real client, use a constant for the network.
        network = call(chain.GetHead, chain_pb2.GetHeadRequest(), until).genesis_hash
        create = operation_pb2.CreateProgram(
            program_name=name,
            data=operation_pb2.ProgramData(json=document),
            access=storage_pb2.AccessControl(mode=storage_pb2.ACCESS_MODE_OWNER),
        )
        body = block_pb2.TransactionBody(
            sender=public_key(key),
            nonce=now,
            timestamp_ms=now,
            network=network,
            expires_ms=now + LIFETIME_S * 1000,
            storage=operation_pb2.StorageOperation(create_program=create),
        ).SerializeToString()
        transaction = block_pb2.Transaction(body=body, signature=sign_transaction(key, body))
        submitted = call(chain.SubmitTransaction, chain_pb2.SubmitTransactionRequest(transaction=transaction), until)
        print("block    ", wait_for(chain, submitted.hash, until + 10))
        address = program_address(public_key(key), name, now)
        program = call(
            storage_pb2_grpc.StorageServiceStub(channel).GetProgram,
            storage_pb2.GetProgramRequest(storage_address=address),
            until + 10,
            identity_headers(key, network),
        )
        print("program  ", address)
        print("data     ", program.data)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        sys.exit(f"{details(error)[0] or error.code().name}: {error.details()}")
