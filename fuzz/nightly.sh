#!/bin/sh
# Runs every fuzz target for a while, two minutes unless told otherwise, and fails on the first
# input that breaks a law. Needs a C++ compiler for libFuzzer's runtime.
#
#   fuzz/nightly.sh [SECONDS [TARGET...]]
#
# What is found on the way is kept in fuzz/target/found, outside of the committed corpus.
set -eu

cd "$(dirname "$0")"
seconds=${1:-120}
[ $# -eq 0 ] || shift

# Instrumentation is a flag of the nightly compiler; the pinned one takes it when told so.
export RUSTC_BOOTSTRAP=1
# A panic ends the process: a law is broken, and the input is written down.
export CARGO_TERM_COLOR=never

# Where C is compiled by another compiler than the sanitizer's own, its marks of a scope's end are
# read wrongly: a table of constants in zstd passes for a variable that is gone.
export CFLAGS="${CFLAGS:-} -fno-sanitize-address-use-after-scope"

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "installing cargo-fuzz"
    cargo install --locked cargo-fuzz
fi

targets=${*:-$(sed -n 's|^path = "targets/\(.*\)\.rs"$|\1|p' Cargo.toml)}
target_folder=${CARGO_TARGET_DIR:-target}

# The address sanitizer finds what Rust does not, in C libraries such as zstd; where its runtime
# does not link, the laws are checked all the same.
sanitizer=address
if ! cargo fuzz build --fuzz-dir . --sanitizer $sanitizer; then
    sanitizer=none
    echo "no address sanitizer here: going on without"
    cargo fuzz build --fuzz-dir . --sanitizer $sanitizer
fi

failed=
for target in $targets; do
    found=$target_folder/found/$target
    mkdir -p "$found" "artifacts/$target"
    also=
    case $target in
    front_matter | tools_json) also="../contract/tests/corpus/valid ../contract/tests/corpus/invalid" ;;
    esac
    echo "== $target, $seconds s, sanitizer $sanitizer"
    # The outer limit is for a target that hangs where libFuzzer's own clock can't stop it.
    # shellcheck disable=SC2086 # folders without spaces
    if ! timeout --kill-after=10 $((seconds + 300)) \
        cargo fuzz run --fuzz-dir . --sanitizer $sanitizer "$target" "$found" "corpus/$target" $also -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1; then
        echo "FAILED: $target; the input lies in fuzz/artifacts/$target"
        failed="$failed $target"
    fi
done

if [ -n "$failed" ]; then
    echo "broken:$failed"
    echo "see it again: cargo fuzz run --fuzz-dir fuzz TARGET fuzz/artifacts/TARGET/FILE"
    echo "once mended, keep the input: move it to fuzz/corpus/TARGET"
    exit 1
fi
echo "no law broken"
