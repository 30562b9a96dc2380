#!/usr/bin/env bash
# mcp-clients.sh: fetches the official MCP conformance suite and the official clients
# for the tests, and prints the folder that they are in:
#
#     xtask/mcp-clients.sh
#
#     DIR/npm/node_modules/.bin   node, conformance and mcp-inspector
#     DIR/npm/node_modules        the TypeScript SDK, @modelcontextprotocol/client
#     DIR/python/bin/python       a Python with the package mcp
#
# What is fetched stands in tests/clients, each file with its digest. npm and pip ask
# the registries that they are set up with; no package's own scripts are run. The suite
# wants a newer Node.js than many systems have, so one is fetched as well, in the
# packages that the npm package `node` would fetch. Nothing is installed outside DIR
# (about 400 MB), and running it again costs nothing.
#
#   MCP_CLIENTS_DIR   DIR, else target/mcp-clients of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wanted=$here/../tests/clients
dir=${MCP_CLIENTS_DIR:-$here/../target/mcp-clients}

say() { printf 'mcp clients: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if command -v flock >/dev/null; then
    exec 9>"$dir/.lock"
    flock 9
fi

# made FOLDER FILE...: whether FOLDER was made from these files as they are now.
made() {
    local folder=$1
    shift
    (cd "$wanted" && cat "$@") | cmp -s - "$folder/.made-from"
}

# finished FOLDER FILE...: says that FOLDER is made from these files, and whole.
finished() {
    local folder=$1
    shift
    (cd "$wanted" && cat "$@") >"$folder/.made-from"
}

if ! made "$dir/npm" package.json package-lock.json; then
    command -v npm >/dev/null ||
        die "no npm on PATH. The conformance suite and the Inspector come from npm: install Node.js, of any version that has npm"
    say "fetching the conformance suite, the Inspector and Node.js from npm"
    rm -rf "$dir/npm"
    mkdir "$dir/npm"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$dir/npm/"
    # The engine check is about the Node.js that runs npm, not the one that is fetched.
    (cd "$dir/npm" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 ||
        die "npm can't fetch what tests/clients/package-lock.json names; its message stands above"
    "$dir/npm/node_modules/.bin/node" --version >/dev/null 2>&1 ||
        die "npm has no Node.js for this machine in the version that tests/clients/package.json names"
    finished "$dir/npm" package.json package-lock.json
fi

if ! made "$dir/python" requirements.txt; then
    python=
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$name
            break
        fi
    done
    [ -n "$python" ] || die "no Python 3.11 or later with the module venv on PATH: the official Python client needs one"
    say "fetching the Python client from PyPI"
    rm -rf "$dir/python"
    "$python" -m venv "$dir/python" >&2 || die "$python can't make a virtual environment"
    "$dir/python/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        --only-binary :all: --requirement "$wanted/requirements.txt" >&2 ||
        die "pip can't fetch what tests/clients/requirements.txt names; its message stands above"
    finished "$dir/python" requirements.txt
fi
printf '%s\n' "$dir"
