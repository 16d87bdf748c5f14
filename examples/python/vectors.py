#!/usr/bin/env python3
"""Checks that this client reproduces the test vectors: vectors.py FOLDER"""

import hashlib
import json
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format

import signing
from gatehouse.chain.v1 import block_pb2

checks = 0


def check(case, what, actual, expected):
    global checks
    checks += 1
    if actual != expected:
        sys.exit(f"{case['name']}: the {what} is\n  {actual}\nand should be\n  {expected}")


def seed_key(case):
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(case["seed"]))


def check_keys(keys, refused, **_):
    for case in keys:
        check(case, "public key", signing.public_key(seed_key(case)), case["publicKey"])
        check(case, "key of the file", signing.public_key(signing.load_key(case["pem"].encode())), case["publicKey"])
    for case in refused:
        try:
            signing.load_key(case["pem"].encode())
        except ValueError:
            check(case, "outcome", "rejected", "rejected")
        else:
            check(case, "outcome", "accepted", "rejected")


def check_addresses(addresses):
    for case in addresses:
        parts = (case["owner"], case["programName"], case["nonce"], case["salt"])
        check(case, "address", signing.program_address(*parts), case["address"])


def check_identities(identities, **_):
    for case in identities:
        expected = [(name, case[name]) for name in ("identity", "timestamp", "network", "signature")]
        headers = signing.identity_headers(seed_key(case), case["network"], case["identity"], case["timestamp"])
        check(case, "headers", headers, expected)


def check_transactions(transactions, genesis, network, **_):
    check({"name": "genesis"}, "network", "0x" + hashlib.sha256(genesis.encode()).hexdigest(), network)
    for case in transactions:
        fields = json_format.ParseDict(case["fields"], block_pb2.TransactionBody())
        body = bytes.fromhex(case["body"])
        check(case, "content", block_pb2.TransactionBody.FromString(body), fields)
        if case["encoding"] == "canonical":
            check(case, "body", fields.SerializeToString(deterministic=True).hex(), case["body"])
        check(case, "message", (signing.TRANSACTION_PREFIX + body).hex(), case["message"])
        check(case, "signature", signing.sign_transaction(seed_key(case), body).hex(), case["signature"])
        check(case, "hash", signing.transaction_hash(body), case["hash"])


def main(folder):
    for name, check_file in {
        "keys": check_keys,
        "addresses": check_addresses,
        "identities": check_identities,
        "transactions": check_transactions,
    }.items():
        check_file(**json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8")))
    print(f"{checks} checks passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
