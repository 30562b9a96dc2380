#!/usr/bin/env bash
# mcp-clients.sh: fetches the official MCP conformance suite and the official clients
# for the tests, and prints the folder that they are in:
#
#     xtask/mcp-clients.sh
#
#     DIR/npm/node_modules/.bin   node, conformance and mcp-inspector
#     DIR/npm/node_modules        the TypeScript SDK, @modelcontextprotocol/client; older ones as sdk-VERSION
#     DIR/python/bin/python       a Python with the package mcp; python-VERSION: with an older one
#
# tests/clients says what is fetched, about 400 MB. The suite wants a newer Node.js than
# many systems have, so one is fetched as well, in the packages that the npm package
# `node` would fetch.
#
#   MCP_CLIENTS_DIR   DIR, else target/mcp-clients of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix='mcp clients'
wanted=$here/../tests/clients
dir=${MCP_CLIENTS_DIR:-$here/../target/mcp-clients}
# shellcheck source=xtask/fetch.sh
source "$here/fetch.sh"

enter
npm_packages npm 'the conformance suite, the Inspector and Node.js'
"$dir/npm/node_modules/.bin/node" --version >/dev/null 2>&1 ||
    die "npm has no Node.js for this machine in the version that tests/clients/package.json names"
python_packages python 'the Python client'
python_packages python-1.3.0 'an older Python client' requirements-1.3.0.txt
python_packages python-1.30.0 'an older Python client' requirements-1.30.0.txt
printf '%s\n' "$dir"
