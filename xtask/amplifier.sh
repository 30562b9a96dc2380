#!/usr/bin/env bash
# amplifier.sh: fetches what the tests of the package for Amplifier need, and prints the
# folder that it is in:
#
#     xtask/amplifier.sh
#
#     DIR/python/bin/python       a Python with amplifier-core, pytest and flit
#
# clients/python/amplifier-module-tool-toolward/tests/requirements.txt says what is
# fetched, about 80 MB.
#
#   AMPLIFIER_DIR   DIR, else target/amplifier of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=amplifier
wanted=$here/../clients/python/amplifier-module-tool-toolward/tests
dir=${AMPLIFIER_DIR:-$here/../target/amplifier}
# shellcheck source=xtask/fetch.sh
source "$here/fetch.sh"

enter
python_packages python 'amplifier-core'
printf '%s\n' "$dir"
