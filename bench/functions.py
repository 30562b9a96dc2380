#!/usr/bin/env python3
"""Which functions of the command calls and starts run, for the linker of a release build to put side by side
(`cli/build.rs`). Samples a release build with `perf`, and writes `cli/functions.txt`.

Those of a call are a fortieth of the program's code. Scattered in it they are on more pages than the processor keeps the
addresses of, and it looks most of them up again in each call."""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

from mcp import Server

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "cli/functions.txt"
HEADER = "# Functions that calls and starts run, the most frequent first. Written by `bench/functions.py`.\n"

# Samples a second, of each thread that runs.
SAMPLES = "15000"
CALLS, AT_ONCE, ROUNDS, STARTS = 30_000, 1_000, 20, 60
CALL = ("text_stats", {"text": "two words"})

# Below this share of names that a build has, the list is of little use to it.
LEAST_KNOWN = 0.8
# The most bytes over which functions extend that are side by side. A few may lie elsewhere.
MOST_APART = 16 << 20


def compare(binary):
    """Prints how many of the functions a build has, and whether they are side by side."""
    symbols = {}
    for line in subprocess.check_output(["nm", binary], text=True).splitlines():
        address, _, name = line.partition(" ")
        if address:
            symbols[name[2:]] = int(address, 16)
    if not symbols:
        return print("the build has no symbols, so that cli/functions.txt can't be compared with it")
    names = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    found = sorted(symbols[name] for name in names if name in symbols)
    if len(found) < len(names) * LEAST_KNOWN:
        how = "; the others have new names: run `bench/functions.py`"
    elif found[len(found) * 95 // 100] - found[len(found) * 5 // 100] > MOST_APART:
        how = ", but not side by side: it was linked by another linker than rustup's lld"
    else:
        how = ", side by side"
    print(f"{len(found)} of the {len(names)} functions in cli/functions.txt are in this build{how}")


def sampled(binary, file):
    """The functions that were seen, the most frequent first. Those without a name are addresses in the report."""
    report = subprocess.check_output(
        ["perf", "report", "--quiet", "--stdio", "--no-children", "--no-demangle", "--sort", "symbol"]
        + ["--dsos", binary.name, "--input", file],
        text=True,
    )
    names = [line.split("[.]")[1].split()[0] for line in report.splitlines() if "[.]" in line]
    names = [name for name in names if not name.startswith("0x")]
    if not names:
        raise SystemExit(f"perf saw no function of {binary}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", action="store_true", help="only compare the list with the build")
    parser.add_argument("binary", type=Path, help="a release build of the command")
    options = parser.parse_args()
    binary = options.binary.absolute()
    if options.compare:
        return compare(binary)
    folder = ROOT / "target/functions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Without the rights for it, perf states so here.
    subprocess.run(["perf", "record", "--quiet", "--output", folder / "tried", "--", "true"], check=True)
    serve = [binary, "serve", "--stdio"]
    serve += ["--bundle", ROOT / "examples/bundles/text-stats.toolbundle"]
    serve += ["--trust-key", ROOT / "examples/keys/example.pub.pem"]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder)}

    def perf(what, *by):
        record = ["perf", "record", "--quiet", "--no-buildid-cache", "--event", "cpu-clock"]
        return [*record, "--freq", SAMPLES, "--output", folder / what, "--", *by, *serve]

    # Drivers are compiled before anything is sampled.
    with Server(serve, env=environment) as server:
        server.call(*CALL)
    with Server(perf("calls"), env=environment) as server:
        for _ in range(CALLS):
            server.call(*CALL)
    with Server(perf("at-once"), env=environment) as server:
        for _ in range(ROUNDS):
            server.calls_at_once(*CALL, AT_ONCE)
    repeated = f'for start in $(seq {STARTS}); do "$@" </dev/null; done'
    starts = perf("starts", "sh", "-c", repeated, "sh")
    subprocess.run(starts, env=environment, stderr=subprocess.DEVNULL, check=True)
    names = {name: None for what in ["calls", "at-once", "starts"] for name in sampled(binary, folder / what)}
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in names))
    print(f"cli/functions.txt: {len(names)} functions")


if __name__ == "__main__":
    main()
