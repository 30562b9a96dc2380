#!/usr/bin/env bash
# languages.sh: fetches what drivers in other languages are built with, and prints the
# folder, which is a toolchain directory of `toolward build`:
#
#     toolward build --toolchain "$(xtask/languages.sh)"
#
#     DIR/js/node_modules         esbuild, componentize-qjs, componentize-js
#     DIR/python/bin              componentize-py, go, python-zig
#
# tests/languages says what is fetched. JavaScript runs in the Node.js that is on PATH.
#
#   LANGUAGES_DIR   DIR, else target/languages of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=languages
wanted=$here/../tests/languages
dir=${LANGUAGES_DIR:-$here/../target/languages}
# shellcheck source=xtask/fetch.sh
source "$here/fetch.sh"

enter
npm_packages js 'the engines for JavaScript'
python_packages python 'componentize-py, Go and Zig'
printf '%s\n' "$dir"
