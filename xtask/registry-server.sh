#!/usr/bin/env bash
# registry-server.sh: finds or fetches Debian's docker-registry, a real registry for
# the tests, and prints the path of its program:
#
#     xtask/registry-server.sh
#
# The one on PATH is taken, else the package is fetched by apt's own tools and unpacked
# below DIR. Nothing is installed, and no root is needed. Running it again costs
# nothing.
#
#   REGISTRY_SERVER_DIR   DIR, else target/registry-server of this repository
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${REGISTRY_SERVER_DIR:-$here/../target/registry-server}

say() { printf 'registry server: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

if found=$(command -v docker-registry); then
    printf '%s\n' "$found"
    exit 0
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
program=$dir/root/usr/bin/docker-registry
if command -v flock >/dev/null; then
    exec 9>"$dir/.lock"
    flock 9
fi
if [ ! -x "$program" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        die "no docker-registry on PATH, and no apt to fetch it with"
    new=$dir/new
    rm -rf "$new"
    mkdir -p "$new/debs" "$new/root" "$new/apt/lists/partial"
    options=(-qq -o APT::Sandbox::User=root)
    say "fetching Debian's docker-registry, about 5 MB"
    if ! (cd "$new/debs" && apt-get "${options[@]}" download docker-registry) >&2; then
        # No package lists on this machine yet: fetch them, but not into the system.
        options+=(-o "Dir::State::lists=$new/apt/lists" -o "Dir::Cache=$new/apt/cache" -o Acquire::Languages=none)
        apt-get "${options[@]}" update >&2 || die "the package lists can't be read"
        (cd "$new/debs" && apt-get "${options[@]}" download docker-registry) >&2 ||
            die "the package docker-registry can't be fetched"
    fi
    dpkg-deb --fsys-tarfile "$new"/debs/docker-registry_*.deb |
        tar -x -C "$new/root" --no-same-owner ./usr/bin/docker-registry
    rm -rf "$dir/root"
    mv "$new/root" "$dir/root"
    rm -rf "$new"
fi
"$program" --version >&2 || die "docker-registry doesn't run here"
printf '%s\n' "$program"
