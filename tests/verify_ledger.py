#!/usr/bin/env python3
"""Verifies a ledger with nothing but the standard library and `openssl`:
verify_ledger.py DIRECTORY [VERIFIER-KEY]. Says what does not hold, and exits with 1."""
import base64, contextlib, functools, hashlib, json, pathlib, sqlite3, subprocess, sys, tempfile
def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()
def push(edge, size, leaf):  # RFC 6962: a subtree is complete for each bit that carries over
    while size & 1:
        leaf, size = sha(b"\1", edge.pop(), leaf), size >> 1
    edge.append(leaf)
def root(edge):
    nodes = edge[::-1] or [sha()]
    return functools.reduce(lambda right, left: sha(b"\1", left, right), nodes)
def signed(note, vkey):  # C2SP signed-note and tlog-checkpoint: size and root, or nothing
    body, _, lines = note.partition("\n\n")
    origin, size, tree = (body.split("\n") + ["", ""])[:3]
    name, _, key = vkey.split("+", 2)
    hash4 = sha(name.encode(), b"\n", key := base64.b64decode(key))[:4]
    found = [base64.b64decode(line.split(" ")[2]) for line in lines.splitlines() if line.startswith(f"\u2014 {name} ")]
    found = b"".join(signature[4:] for signature in found if signature[:4] == hash4)
    with tempfile.TemporaryDirectory() as folder:
        key = bytes.fromhex("302a300506032b6570032100") + key[1:]
        for file, content in ("key", key), ("body", f"{body}\n".encode()), ("sig", found):
            pathlib.Path(folder, file).write_bytes(content)
        check = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in body -sigfile sig"
        good = origin == name and not subprocess.run(check.split(), cwd=folder, capture_output=True).returncode
    return (int(size), base64.b64decode(tree)) if good else (None, None)
directory = pathlib.Path(sys.argv[1])
vkey = sys.argv[2] if len(sys.argv) > 2 else (directory / "ledger.vkey").read_text().strip()
sql = sqlite3.connect(f"file:{directory / 'records.sqlite'}?mode=ro", uri=True)
findings, notes, edge, size, good, said, pruned, empty = [], {}, [], 0, 0, 0, 0, []
for at, note, _ in sql.execute("SELECT size, note, edge FROM checkpoint ORDER BY size").fetchall():
    says, tree = signed(note, vkey)
    notes, findings = (notes | {at: tree}, findings) if says == at else (notes, findings + [f"checkpoint {at}"])
for seq, leaf, record in sql.execute("SELECT seq, leaf, record FROM entry ORDER BY seq"):
    if seq != size:  # what is behind a gap is not looked at: the tree can't be known
        findings.append(f"rows {size} to {seq} are missing")
        break
    if record is None:
        empty.append(seq)
    elif sha(b"\0", record) != leaf:
        findings.append(f"row {seq}")
    elif b'"kind":"pruned"' in record:
        said = max(said, json.loads(record)["body"]["to"] // 256 * 256)
    push(edge, size, leaf)
    size += 1
    if size in notes:  # only below a checkpoint that holds does a row say what was pruned
        findings += [f"rows {good} to {size}"] if (differs := root(edge) != notes[size]) else []
        good, pruned = size, pruned if differs else said
findings += [f"{size} rows of {at}" for at in sorted(notes) if at > size]
findings += [f"row {seq} is empty" for seq in empty if seq >= pruned]
if sql.execute("SELECT size, edge FROM head").fetchone() != (size, b"".join(edge)):
    findings.append(f"head, rows from {good}")
with contextlib.suppress(sqlite3.Error):  # payloads may be lost
    sql = sqlite3.connect(f"file:{directory / 'payloads.sqlite'}?mode=ro", uri=True)
    for hash32, salt, kind, content in sql.execute("SELECT commitment, salt, kind, bytes FROM payload"):
        if sha(b"\2", salt, bytes([len(kind)]), kind.encode(), content) != hash32:
            findings.append(f"payload {hash32.hex()}")
print("\n".join(findings) or f"{size} rows, {good} signed")
sys.exit(bool(findings))
