#!/usr/bin/env bash
# side-by-side.sh: sets up MCP servers that greet somebody by name, the way people have them
# without Toolward, and measures them against this one by bench/side_by_side.py:
#
#     xtask/side-by-side.sh TOOLWARD [OPTION...]
#
# TOOLWARD is the command to measure, of a release build. The others are ACT and servers made
# with the SDKs for Node.js and Python. Toolward and ACT both record the calls. The options are
# those of bench/side_by_side.py, such as `--rounds 3`, or a further `--server`.
#
#   SIDE_BY_SIDE_DIR   where the servers go, else target/side-by-side of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
prefix='side by side'
wanted=$root/bench/peers
dir=${SIDE_BY_SIDE_DIR:-$root/target/side-by-side}
# shellcheck source=xtask/fetch.sh
source "$here/fetch.sh"

[ $# -gt 0 ] || die "name the command to measure, such as target/release/toolward"
toolward=$(realpath "$1")
shift

enter
python_packages act 'ACT'
clients=$("$here/mcp-clients.sh")
"$here/guest-toolchain.sh" >&2
cargo=${GUEST_TOOLCHAIN_DIR:-$root/target/guest-toolchain}/guest-cargo

say "building the tools"
"$cargo" build --locked --quiet --release --target wasm32-wasip2 \
    --manifest-path "$wanted/act/Cargo.toml" --target-dir "$dir/build"
cp "$dir/build/wasm32-wasip2/release/greet.wasm" "$dir/greet.wasm"
"$dir/act/bin/act-build" pack "$dir/greet.wasm" --set std.name=greet >&2

# No server reads what an earlier run left.
home=$dir/home
rm -rf "$home" "$dir/greet"
mkdir -p "$home/act" "$home/toolward"
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
export TOOLWARD_GUEST_CARGO=$cargo
HOME=$home/toolward "$toolward" --quiet new --id text.greet "$dir/greet" >&2
HOME=$home/toolward "$toolward" --quiet build "$dir/greet" >&2

arguments='{"name":"Ada"}'
exec python3 "$root/bench/side_by_side.py" \
    --server 'ACT' "env HOME='$home/act' '$dir/act/bin/act' run --mcp '$dir/greet.wasm'" greet "$arguments" \
    --server 'Toolward' "env HOME='$home/toolward' '$toolward' serve --dev '$dir/greet'" text_greet "$arguments" \
    --server 'SDK for Node.js' "'$clients/npm/node_modules/.bin/node' '$wanted/greet.mjs' '$clients/npm/node_modules'" greet "$arguments" \
    --server 'SDK for Python' "'$clients/python-1.30.0/bin/python' '$wanted/greet.py'" greet "$arguments" \
    "$@"
