#!/usr/bin/env bash
# valgrind.sh: makes sure that there is a valgrind for the tests that count instructions: the
# system's, else that of Debian's package, unpacked where nothing else is changed.
#
#   VALGRIND_DIR   where to, else target/valgrind of this repository
set -euo pipefail

command -v valgrind >/dev/null && exit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=valgrind
wanted=$here
dir=${VALGRIND_DIR:-$here/../target/valgrind}
# shellcheck source=xtask/fetch.sh
source "$here/fetch.sh"

enter
[ -x "$dir/valgrind" ] && exit
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "no valgrind on PATH, and no Debian package to take it from: install it"
say "fetching valgrind from Debian"
rm -rf "$dir/new" "$dir/root"
mkdir -p "$dir/new/lists/partial" "$dir/new/cache/archives/partial" "$dir/new/debs"
apt=(-qq -o "Dir::State::lists=$dir/new/lists" -o "Dir::Cache=$dir/new/cache" -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update >&2 || die "apt-get can't read the lists of packages"
(cd "$dir/new/debs" && apt-get "${apt[@]}" download valgrind) >&2 || die "apt-get can't fetch valgrind"
dpkg-deb -x "$dir"/new/debs/valgrind_*.deb "$dir/root"
{
    echo '#!/bin/sh'
    printf 'VALGRIND_LIB=%q exec %q "$@"\n' "$dir/root/usr/libexec/valgrind" "$dir/root/usr/bin/valgrind"
} >"$dir/valgrind.new"
chmod +x "$dir/valgrind.new"
mv "$dir/valgrind.new" "$dir/valgrind"
rm -rf "$dir/new"
"$dir/valgrind" --version >&2
