#!/usr/bin/env bash
# guest-toolchain.sh: finds or makes a Rust compiler for wasm32-wasip2, and writes
# DIR/guest-cargo, a cargo that uses it, and DIR/compiler, the compiler's version:
#
#     target/guest-toolchain/guest-cargo build --release --target wasm32-wasip2
#
# Routes, in this order; the first that can make a component is kept:
#   active  the toolchain that is active anyway, where it has the target;
#   debian  rustc and the target's standard library from a newer Debian suite, by
#           apt's own tools, unpacked below DIR and run with that suite's own ld.so
#           (about 190 MB fetched, 575 MB on disk). cargo and the linkers still come
#           from the active toolchain. Nothing is installed, neither into the system
#           nor into rustup, and no root is needed;
#   rustup  `rustup target add wasm32-wasip2`. It changes the active toolchain, so it is
#           used only where Debian is not at hand, or where GUEST_ROUTE asks for it.
# Running it again costs a fraction of a second; a route that still works is kept.
#
#   GUEST_TOOLCHAIN_DIR   DIR, else target/guest-toolchain of this repository
#   GUEST_ROUTE           active, debian or rustup: only this route
#   GUEST_SUITES          Debian suites to try in turn, else "forky sid trixie"
#   GUEST_VERBOSE         show what the compiler says of a route that does not work
set -euo pipefail

target=wasm32-wasip2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${GUEST_TOOLCHAIN_DIR:-$here/../target/guest-toolchain}
route=${GUEST_ROUTE:-any}
suites=${GUEST_SUITES:-forky sid trixie}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf 'guest toolchain: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

case $route in any | active | debian | rustup) ;; *) die "GUEST_ROUTE is active, debian or rustup, not $route" ;; esac
command -v cargo >/dev/null && command -v rustc >/dev/null || die "no cargo and rustc on PATH: install Rust first"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if command -v flock >/dev/null; then
    exec 9>"$dir/.lock"
    flock 9
fi
unset RUSTC RUSTFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_BUILD_RUSTC CARGO_ENCODED_RUSTFLAGS

# works RUSTC: whether it turns a program that uses std into a component. The first
# eight bytes of a component are those below; a core module's last four differ.
works() {
    local scratch result=1
    scratch=$(mktemp -d)
    echo 'fn main() { println!("{:?}", std::fs::read("x").is_ok()) }' >"$scratch/probe.rs"
    if "$1" --edition 2021 --target "$target" -o "$scratch/probe.wasm" "$scratch/probe.rs" >"$scratch/log" 2>&1 &&
        [ "$(od -An -tx1 -N8 "$scratch/probe.wasm" | tr -d ' \n')" = 0061736d0d000100 ]; then
        result=0
    elif [ -n "${GUEST_VERBOSE:-}" ]; then
        cat "$scratch/log" >&2
    fi
    rm -rf "$scratch"
    return $result
}

# finish ROUTE RUSTC: writes guest-cargo, and is the end of the script.
finish() {
    {
        echo '#!/bin/sh'
        echo "# Written by guest-toolchain.sh. Route: $1."
        # What an outer cargo sets for its own compiler is not meant for this one.
        echo 'unset RUSTC RUSTFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_BUILD_RUSTC CARGO_ENCODED_RUSTFLAGS'
        if [ "$1" = debian ]; then printf 'RUSTC=%q\nexport RUSTC\n' "$2"; fi
        echo 'exec cargo "$@"'
    } >"$dir/guest-cargo.new"
    chmod +x "$dir/guest-cargo.new"
    mv "$dir/guest-cargo.new" "$dir/guest-cargo"
    # For the provenance of what it builds.
    "$2" --version >"$dir/compiler"
    say "$(cat "$dir/compiler") (route: $1)"
    exit 0
}

# The Debian mirror that this machine's apt is set up with; empty where there is none.
mirror() {
    local lists=$1/lists options
    mkdir -p "$lists/partial"
    options=(-qq -o "Dir::State::lists=$lists" -o "Dir::Cache=$1/cache" -o APT::Sandbox::User=root)
    query() {
        apt-get "$@" indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
            sed -n 's/^Debian Debian //p' | sort -u | head -1
    }
    local found
    found=$(query)
    if [ -z "$found" ]; then
        # No package lists on this machine yet: fetch them, but not into the system.
        apt-get "${options[@]}" update >/dev/null 2>&1 || true
        found=$(query "${options[@]}")
    fi
    printf '%s' "$found"
}

# debian SUITE MIRROR: fills DIR/debian; fails where the suite has no such compiler.
debian() {
    local suite=$1 from=$2 new="$dir/debian.new" host linkers linker deb libraries loader
    host=$(rustc -vV | sed -n 's/^host: //p')
    linkers=$(rustc --print sysroot)/lib/rustlib/$host/bin
    for linker in rust-lld wasm-component-ld gcc-ld/wasm-ld; do
        [ -x "$linkers/$linker" ] || die "$linker is not in the active toolchain, and this route takes its linkers from there"
    done

    rm -rf "$new"
    mkdir -p "$new"/apt/lists/partial "$new"/apt/cache/archives/partial "$new"/debs "$new"/root "$new"/bin
    echo "deb [signed-by=$keyring] $from $suite main" >"$new/apt/sources.list"
    local apt=(-qq -o "Dir::Etc::sourcelist=$new/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
        -o "Dir::State::lists=$new/apt/lists" -o Dir::State::status=/dev/null
        -o "Dir::Cache=$new/apt/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root)
    say "reading the package lists of Debian $suite"
    apt-get "${apt[@]}" update || return 1
    # All that the two standard libraries need at run time, less what only dpkg would.
    local packages
    mapfile -t packages < <(apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests \
        --no-conflicts --no-breaks --no-replaces --no-enhances libstd-rust-dev libstd-rust-dev-wasm32 |
        grep -E '^[a-z0-9]' | grep -vE '^(debconf|cdebconf|dpkg|perl|tar|gcc-[0-9]+-base)' | sort -u)
    say "fetching rustc and $((${#packages[@]})) packages that it needs, about 190 MB"
    (cd "$new/debs" && apt-get "${apt[@]}" download rustc "${packages[@]}") || return 1
    for deb in "$new"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$new/root" --no-same-owner --exclude=./etc \
            --exclude=./usr/share --exclude='./usr/lib/rustlib/wasm32-unknown-*' \
            --exclude=./usr/lib/rustlib/wasm32-wasip1 || return 1
    done
    [ -d "$new/root/usr/lib/rustlib/$target" ] || { say "Debian $suite has no standard library for $target"; return 1; }
    rm -rf "$new/debs" "$new/apt"

    mkdir -p "$new/root/usr/lib/rustlib/$host/bin/gcc-ld"
    for linker in rust-lld wasm-component-ld gcc-ld/wasm-ld; do
        ln -sf "$linkers/$linker" "$new/root/usr/lib/rustlib/$host/bin/$linker"
    done
    rm -rf "$dir/debian"
    mv "$new" "$dir/debian"
    libraries=$dir/debian/root/usr/lib/${host%%-*}-linux-gnu
    loader=$(ls "$libraries"/ld-linux*.so.* | head -1)
    printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' \
        "$loader" "$libraries" "$dir/debian/root/usr/bin/rustc" >"$dir/debian/bin/rustc"
    chmod +x "$dir/debian/bin/rustc"
    works "$dir/debian/bin/rustc" || { say "the rustc of Debian $suite makes no component here"; return 1; }
}

try_active() { works rustc && finish active rustc; }

# Returns only where Debian is not at hand; where it is, and fails, that is the end.
try_debian() {
    local from suite
    if [ -x "$dir/debian/bin/rustc" ] && works "$dir/debian/bin/rustc"; then
        finish debian "$dir/debian/bin/rustc"
    fi
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ -r "$keyring" ] || return 0
    from=$(mirror "$dir/apt")
    rm -rf "$dir/apt"
    [ -n "$from" ] || return 0
    for suite in $suites; do
        if debian "$suite" "$from"; then finish debian "$dir/debian/bin/rustc"; fi
    done
    die "none of Debian's suites ($suites) gave a compiler for $target; GUEST_ROUTE=rustup tries rustup instead"
}

try_rustup() {
    command -v rustup >/dev/null || return 0
    say "rustup target add $target"
    rustup target add "$target" >&2 || return 0
    if works rustc; then finish rustup rustc; fi
}

case $route in
any) try_active || true; try_debian; try_rustup ;;
active) try_active || true ;;
debian) try_debian ;;
rustup) try_rustup ;;
esac
die "no compiler for $target (route: $route). Add the target to the active toolchain, or run this where apt or rustup can fetch it."
