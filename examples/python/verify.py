#!/usr/bin/env python3
"""Reads a storage program and verifies the proof, as docs/proofs.md describes, so that no node must be trusted."""

import argparse
import base64
import hashlib
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    sys.exit("The package cryptography is missing (on Debian: python3-cryptography).")

NOTHING = bytes(32)
LATEST = 2**64 - 1
HASH = re.compile(r"0x[0-9a-f]{64}")


class ProofError(Exception):
    """An invalid proof. `flaw` is one of the names in docs/proofs.md."""

    def __init__(self, flaw, message):
        super().__init__(message)
        self.flaw = flaw


def require(condition, flaw, message):
    if not condition:
        raise ProofError(flaw, message)


# Hashes and keys.


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def key_of(tag, name):
    return sha256(tag.encode(), b"\0", name)


def field_key(name):
    text = json.dumps(name, ensure_ascii=False)
    # UTF-8 cannot encode a lone surrogate, so it is written as an escape.
    text = re.sub("[\ud800-\udfff]", lambda surrogate: f"\\u{ord(surrogate[0]):04x}", text)
    return key_of("field", text.encode())


def uint64(number):
    return number.to_bytes(8, "big")


def hash_bytes(text, what):
    require(isinstance(text, str) and HASH.fullmatch(text), "malformed", f"{what} is 0x and 64 lower-case hex digits")
    return bytes.fromhex(text[2:])


# The tree.


def bit(key, depth):
    return key[depth // 8] >> (7 - depth % 8) & 1


def root_of_path(key, value_hash, path):
    """Computes the root from a key and its path; None if the path is invalid. Without a value, value_hash is None."""
    siblings = decode(path["siblings"])
    depth = len(siblings) // 32
    if len(siblings) % 32 or depth > 256:
        return None
    end = None if value_hash is None else (key, value_hash)
    if "other" in path:
        other = (decode(path["other"]["key"]), decode(path["other"]["valueHash"]))
        # Another leaf is in the place of the key: it shares the path, and the key itself has no value.
        shares_path = len(other[0]) == 32 and all(bit(other[0], i) == bit(key, i) for i in range(depth))
        if value_hash is not None or not shares_path or other[0] == key:
            return None
        end = other
    if end is not None and len(end[1]) != 32:
        return None
    node = NOTHING if end is None else sha256(b"\0", *end)
    for at in reversed(range(depth)):
        sibling = siblings[32 * at : 32 * at + 32]
        node = sha256(b"\1", sibling, node) if bit(key, at) else sha256(b"\1", node, sibling)
    return node


def root_of_leaves(leaves, depth=0):
    """Computes the root of a tree from all leaves: pairs of a key and the hash of its value."""
    if len(leaves) < 2:
        return sha256(b"\0", *leaves[0]) if leaves else NOTHING
    halves = [[leaf for leaf in leaves if bit(leaf[0], depth) == side] for side in (0, 1)]
    return sha256(b"\1", *(root_of_leaves(half, depth + 1) for half in halves))


def check_path(root, key, value_hash, path, what):
    is_valid = root_of_path(key, value_hash, path) == root
    require(is_valid, "path", f"the proof of {what} does not lead to the signed root")


# Signatures.


def decode(text):
    return base64.b64decode(text)


def read_protobuf(content, what):
    """Decodes a message into its fields by number: integers and bytes."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = content[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    try:
        while at < len(content):
            tag = varint()
            if tag & 7 == 0:
                value = varint()
            elif tag & 7 == 2:
                length = varint()
                value = content[at : at + length]
                at += length
                require(at <= len(content), "malformed", f"{what} is truncated")
            else:
                raise ProofError("malformed", f"{what} cannot be decoded")
            fields[tag >> 3] = value
    except IndexError:
        raise ProofError("malformed", f"{what} is truncated") from None
    return fields


def text_of(fields, number):
    return fields.get(number, b"").decode(errors="replace")


def check_signer(network, proposer, genesis_hash, prefix, content, signature, what):
    require(proposer in network["authorities"], "signature", f"no authority has signed {what}")
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(proposer[2:])).verify(signature, prefix + content)
    except (InvalidSignature, ValueError):
        raise ProofError("signature", f"no authority has signed {what}") from None
    require(genesis_hash == network["hash"], "network", f"an authority signed {what} for another network")


def read_network(genesis, pinned):
    """Returns the authorities from the text of a genesis, which must have the pinned hash."""
    found = "0x" + hashlib.sha256(genesis.encode()).hexdigest()
    require(found == pinned, "network", f"the genesis is that of the network {found}")
    return {"hash": found, "authorities": set(json.loads(genesis).get("authorities", []))}


def check_block(question, answer, network, now_ms, max_age_s, seen):
    """Steps 1 to 5: returns the block of the response, with the root of its state."""
    header = decode(answer["header"])
    signature = decode(answer["signature"])
    if header:
        fields = read_protobuf(header, "the header")
        number = fields.get(1, 0)
        what = f"block {number}"
        check_signer(network, text_of(fields, 5), text_of(fields, 7), b"gatehouse block v3\0", header, signature, what)
        require(number > 0, "malformed", "block 0 has no header")
        root = hash_bytes(text_of(fields, 8), "the root of the state")
        signed_at_ms = fields.get(3, 0)
        block_hash = "0x" + sha256(header).hex()
    else:
        require(not signature, "malformed", "a signature without a header")
        number, root, signed_at_ms, block_hash = 0, NOTHING, None, network["hash"]
    requested = question.get("block")
    require(requested is None or number == int(requested), "missing", f"the response is for block {number}")
    if seen is not None:
        is_newer = requested is not None or number >= seen["number"]
        require(is_newer, "rollback", f"block {seen['number']} was seen before")
        one_chain = not header or number != seen["number"] or block_hash == seen["hash"]
        require(one_chain, "fork", f"two signed blocks have the number {number}")
    if requested is None:
        check_age(answer, network, number, block_hash, signed_at_ms, now_ms, max_age_s)
    return number, block_hash, root


def check_age(answer, network, number, block_hash, signed_at_ms, now_ms, max_age_s):
    require(signed_at_ms is not None or "head" in answer, "age", "no signed head says that block 0 is the latest")
    if "head" in answer:
        statement = decode(answer["head"]["statement"])
        fields = read_protobuf(statement, "the signed head")
        signer = (text_of(fields, 4), text_of(fields, 5), b"gatehouse head v1\0", statement)
        check_signer(network, *signer, decode(answer["head"]["signature"]), "that the block is the latest")
        is_same = fields.get(1, 0) == number and text_of(fields, 2) == block_hash
        require(is_same, "missing", "the signed head is for another block")
        signed_at_ms = max(signed_at_ms or 0, fields.get(3, 0))
    age_s = (now_ms - signed_at_ms) / 1000
    require(abs(age_s) <= max_age_s, "age", f"an authority last signed {age_s:.0f} s ago that this block is the latest")


# The content of the state.


def check_program(question, answer, root):
    address = question.get("storageAddress")
    if address is None:
        return None
    proof = answer.get("program")
    require(proof is not None and proof["storageAddress"] == address, "missing", "the proof is for another program")
    state = proof.get("program")
    value_hash = program_hash(state) if state is not None else decode(proof["valueHash"]) if "valueHash" in proof else None
    check_path(root, key_of("program", address.encode()), value_hash, proof["path"], f"the program {address}")
    if state is None:
        has_hash = "valueHash" in proof
        require(not has_hash or "block" in question, "missing", "the response has only a hash of the program")
        return {"kind": "changed" if has_hash else "absent"}
    record = read_protobuf(decode(state["record"]), "the record")
    require(text_of(record, 1) == address, "value", "the record is for another program")
    metadata_hash = decode(state["metadataHash"])
    metadata = data = None
    if question.get("withMetadata") and metadata_hash != NOTHING:
        metadata = state.get("metadata")
        require(metadata is not None, "missing", "the metadata is missing")
        require(sha256(metadata.encode()) == metadata_hash, "value", "the metadata does not match its hash")
    document = "object" if "object" in state else "plain" if "textHash" in state else "none"
    if question.get("withDocument") and document != "none":
        data = state.get("data")
        require(data is not None, "missing", "the document is missing")
        is_equal = document_hash(data, document) == document_hash_of(state)
        require(is_equal, "value", "the document does not match its hash")
    return {
        "kind": "present",
        "deleted": bool(record.get(2, 0)),
        "owner": text_of(record, 3),
        "programName": text_of(record, 4),
        "sizeBytes": record.get(6, 0),
        "document": document,
        "data": data,
        "metadata": metadata,
        "fields": check_fields(question.get("fields", []), state["object"]) if document == "object" else {},
    }


def require32(text, what):
    content = decode(text)
    require(len(content) == 32, "malformed", f"{what} has {len(content)} bytes, not 32")
    return content


def program_hash(state):
    blinding = require32(state["blinding"], "the blinding")
    metadata_hash = require32(state["metadataHash"], "the hash of the metadata")
    return sha256(blinding, sha256(decode(state["record"])), metadata_hash, document_hash_of(state))


def document_hash_of(state):
    if "object" in state:
        parts = (require32(state["object"][name], name) for name in ("fieldsRoot", "lastKey", "tailHash"))
        return sha256(b"\1", *parts)
    return require32(state["textHash"], "the hash of the document") if "textHash" in state else NOTHING


def document_hash(data, document):
    """Computes the hash of a document; None if it is of another kind, or has a duplicate name."""
    if document == "plain":
        return sha256(b"\0", data.encode())
    parts = object_parts(data)
    return parts and sha256(b"\1", *parts)


def object_parts(data):
    try:
        fields, tail = split_object(data)
    except ValueError:
        return None
    leaves, previous = [], NOTHING
    for name, before, value in fields:
        key = field_key(name)
        leaves.append((key, field_hash(before, previous, value)))
        previous = key
    if len(dict(leaves)) < len(leaves):
        return None
    return root_of_leaves(leaves), previous, sha256(tail.encode())


SPACE = re.compile(r"[ \t\n\r]*")


def split_object(data):
    """Splits an object into names, texts before values, and values. Returns them with the text after the last value."""
    if not isinstance(json.loads(data), dict):
        raise ValueError("not an object")
    scan = json.JSONDecoder().raw_decode
    fields, end, at = [], 0, SPACE.match(data, data.index("{") + 1).end()
    while data[at] == '"':
        name, at = scan(data, at)
        start = SPACE.match(data, SPACE.match(data, at).end() + 1).end()
        before = data[end:start]
        _, end = scan(data, start)
        fields.append((name, before, data[start:end]))
        at = SPACE.match(data, end).end()
        if data[at] == ",":
            at = SPACE.match(data, at + 1).end()
    return fields, data[end:]


def field_hash(before, previous_key, value):
    text = before.encode()
    return sha256(len(text).to_bytes(4, "big"), text, previous_key, value.encode())


def check_fields(names, state):
    require(len(names) == len(state["fields"]), "missing", "some fields have no proof")
    root = decode(state["fieldsRoot"])
    fields = {}
    for name, proof in zip(names, state["fields"]):
        require(proof["name"] == name, "missing", f"a proof is missing for the field {name!r}")
        field = proof.get("field")
        value_hash = None
        if field is not None:
            previous_key = require32(field["previousKey"], "the key of the previous field")
            value_hash = field_hash(field["before"], previous_key, field["value"])
        check_path(root, field_key(name), value_hash, proof["path"], f"the field {name!r}")
        fields[name] = None if field is None else field["value"]
    return fields


def check_nullifier(requested, proof, root):
    require(proof["nullifierHash"] == requested.lower(), "missing", "the proof is for another nullifier")
    number, transaction = proof.get("blockNumber"), proof.get("transactionHash")
    require((number is None) == (transaction is None), "malformed", "only one of block number and transaction is set")
    spent = number is not None
    value_hash = sha256(uint64(int(number)), hash_bytes(transaction, "the transaction's hash")) if spent else None
    key = key_of("nullifier", bytes.fromhex(proof["nullifierHash"][2:]))
    check_path(root, key, value_hash, proof["path"], "the nullifier")
    use = {"blockNumber": str(number), "transactionHash": transaction} if spent else None
    return {"nullifierHash": proof["nullifierHash"], "use": use}


def check_sender(requested, proof, root, is_past):
    address = "0x" + requested.lower().removeprefix("0x")
    require(proof["address"] == address, "missing", "the proof is for another sender")
    nonce = proof.get("nonce")
    changed = "valueHash" in proof
    value_hash = decode(proof["valueHash"]) if changed else None if nonce is None else sha256(uint64(int(nonce)))
    check_path(root, key_of("sender", bytes.fromhex(address[2:])), value_hash, proof["path"], "the nonce")
    require(not changed or is_past, "missing", "the response has only a hash of the nonce")
    return {"address": address, "nonce": None if changed else str(nonce or 0)}


def check_commitments(proof, root, is_past):
    require(proof is not None, "missing", "the commitment tree has no proof")
    tree = proof.get("tree")
    value_hash = decode(proof["valueHash"]) if "valueHash" in proof else None
    if tree is not None:
        value_hash = sha256(hash_bytes(tree["root"], "the root of the commitment tree"), uint64(tree["leafCount"]))
    check_path(root, key_of("commitments", b""), value_hash, proof["path"], "the commitment tree")
    require("valueHash" not in proof or is_past, "missing", "the response has only a hash of the commitment tree")
    return {"kind": "tree", **tree} if tree else {"kind": "empty" if value_hash is None else "changed"}


def check_proof(question, answer, network, now_ms, max_age_s=120, seen=None):
    """Returns the verified state, or raises ProofError with the first flaw. Takes the JSON of GET /state/proof."""
    if int(question.get("block", LATEST)) == LATEST:
        question = {name: value for name, value in question.items() if name != "block"}
    number, block_hash, root = check_block(question, answer, network, now_ms, max_age_s, seen)
    is_past = "block" in question
    for name in ("nullifiers", "senders"):
        same = len(question.get(name, [])) == len(answer[name])
        require(same or name not in question, "missing", f"some of the {name} have no proof")
    nullifiers = zip(question.get("nullifiers", []), answer["nullifiers"])
    senders = zip(question.get("senders", []), answer["senders"])
    wanted = question.get("withCommitments")
    return {
        "block": {"number": str(number), "hash": block_hash},
        "program": check_program(question, answer, root),
        "nullifiers": [check_nullifier(requested, proof, root) for requested, proof in nullifiers],
        "senders": [check_sender(requested, proof, root, is_past) for requested, proof in senders],
        "commitments": check_commitments(answer.get("commitments"), root, is_past) if wanted else None,
    }


# The command line.


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        sys.exit(f"The node responded with an error: {error.read().decode()}")
    except OSError as error:
        sys.exit(f"No node responds at {url}: {error}")


def main():
    parser = argparse.ArgumentParser(description="Reads a storage program or one of its fields, with a proof.")
    parser.add_argument("url", metavar="URL", help="URL of a node, such as http://127.0.0.1:53550")
    parser.add_argument("genesis", metavar="GENESIS_HASH", help="genesis hash of the network: 0x and 64 hex digits")
    parser.add_argument("address", metavar="ADDRESS", help="stor- and 40 hex digits")
    parser.add_argument("field", metavar="FIELD", nargs="?", help="a top-level field; by default the complete document")
    parser.add_argument("--max-age", metavar="SECONDS", type=float, default=120, help="default %(default)s")
    arguments = parser.parse_args()
    question = {"storageAddress": arguments.address}
    question.update({"withDocument": True} if arguments.field is None else {"fields": [arguments.field]})
    query = {name: "true" if value is True else value for name, value in question.items()}
    base = arguments.url.rstrip("/")
    answer = get(f"{base}/state/proof?{urllib.parse.urlencode(query, doseq=True)}")
    try:
        network = read_network(get(f"{base}/genesis"), arguments.genesis.lower())
        proved = check_proof(question, json.loads(answer), network, time.time() * 1000, arguments.max_age)
    except ProofError as error:
        sys.exit(f"Not proven ({error.flaw}): {error}.")
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"Not proven (malformed): {error!r}.")
    program = proved["program"]
    if program["kind"] != "present" or program["deleted"]:
        sys.exit("Proven: there is no storage program at this address.")
    value = program["data"] if arguments.field is None else program["fields"].get(arguments.field)
    if value is None:
        sys.exit("Proven: there is no such field." if arguments.field else "Proven: the program has no data.")
    print(value)
    block = proved["block"]
    print(f"proven by the header of block {block['number']}, {block['hash']}", file=sys.stderr)


if __name__ == "__main__":
    main()
