#!/usr/bin/env python3
"""Checks that verify.py reproduces the proof vectors: verify_vectors.py FOLDER"""

import json
import sys
from pathlib import Path

import verify

checks = 0


def check(name, actual, expected):
    global checks
    checks += 1
    if actual != expected:
        sys.exit(f"{name}:\n  {actual}\nand should be\n  {expected}")


def outcome(case, vectors, network):
    seen = case.get("seen") and {**case["seen"], "number": int(case["seen"]["number"])}
    now_ms = int(case.get("nowMs", vectors["nowMs"]))
    try:
        return verify.check_proof(case["question"], case["answer"], network, now_ms, vectors["maxAgeS"], seen)
    except verify.ProofError as error:
        return error.flaw


def main(folder):
    vectors = json.loads((Path(folder) / "proofs.json").read_text(encoding="utf-8"))
    network = verify.read_network(vectors["genesis"], vectors["network"])
    for case in vectors["keys"]:
        subject = case["of"]
        name = bytes.fromhex(subject[2:]) if case["kind"] in ("nullifier", "sender") else subject.encode(errors="replace")
        key = verify.field_key(subject) if case["kind"] == "field" else verify.key_of(case["kind"], name)
        check(f"key of {case['kind']} {subject!r}", key.hex(), case["key"])
    for case in vectors["documents"]:
        kind = "object" if "fieldsRoot" in case else "plain"
        check(case["name"], verify.document_hash(case["text"], kind).hex(), case["hash"])
    for case in vectors["proofs"]:
        proved = outcome(case, vectors, network)
        program = isinstance(proved, dict) and proved["program"]
        if program and "fields" in program:
            program["fields"] = [{"name": name, "exists": value is not None} for name, value in program["fields"].items()]
        check(case["name"], proved, case["proved"])
    for case in vectors["refused"]:
        check(case["name"], outcome(case, vectors, network), case["flaw"])
    print(f"{checks} checks passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
