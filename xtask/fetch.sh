# fetch.sh: what the scripts beside it share. They set `prefix`, what their messages
# begin with, `wanted`, the folder that says what to fetch, and `dir`, where it goes.
#
# What is fetched stands in `wanted`, each file with its digest. npm and pip ask the
# registries that they are set up with; no package's own scripts are run. Nothing is
# installed outside `dir`, and running it again costs nothing.

say() { printf '%s: %s\n' "$prefix" "$*" >&2; }
die() { say "$*"; exit 1; }

# enter: makes `dir` and waits until no other process fetches into it.
enter() {
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    if command -v flock >/dev/null; then
        exec 9>"$dir/.lock"
        flock 9
    fi
}

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

# emptied FOLDER: makes it anew, if it is one that these scripts made.
emptied() {
    [ ! -e "$1" ] || [ -e "$1/.made-from" ] || [ -e "$1/.fetching" ] ||
        die "$1 is there, and was not made by this script: name another place"
    rm -rf "$1"
    mkdir "$1"
    : >"$1/.fetching"
}

# npm_packages FOLDER WHAT: FOLDER/node_modules as `wanted`/package-lock.json has it.
npm_packages() {
    local folder=$dir/$1
    made "$folder" package.json package-lock.json && return
    command -v npm >/dev/null ||
        die "no npm on PATH, where $2 would come from: install Node.js, of any version that has npm"
    say "fetching $2 from npm"
    emptied "$folder"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$folder/"
    # The engine check is about the Node.js that runs npm, not the one that runs these.
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 ||
        die "npm can't fetch what $wanted/package-lock.json names; its message stands above"
    finished "$folder" package.json package-lock.json
}

# python_packages FOLDER WHAT [FILE]: a virtual environment with what `wanted`/FILE names, else requirements.txt.
python_packages() {
    local folder=$dir/$1 file=${3:-requirements.txt} python= name
    made "$folder" "$file" && return
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$name
            break
        fi
    done
    [ -n "$python" ] || die "no Python 3.11 or later with the module venv on PATH: $2 needs one"
    say "fetching $2 from PyPI"
    emptied "$folder"
    "$python" -m venv "$folder" >&2 || die "$python can't make a virtual environment"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        --only-binary :all: --requirement "$wanted/$file" >&2 ||
        die "pip can't fetch what $wanted/$file names; its message stands above"
    finished "$folder" "$file"
}
