#!/usr/bin/env bash
# spelling.sh: fetches the spell checker codespell, in the version of
# spelling/requirements.txt, and prints the folder of its Python.
#
#   SPELLING_DIR   that folder's parent, else target/spelling of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=spelling
wanted=$here/spelling
dir=${SPELLING_DIR:-$here/../target/spelling}
# shellcheck source=xtask/fetch.sh
source "$here/fetch.sh"

enter
python_packages python 'the spell checker'
printf '%s\n' "$dir/python"
