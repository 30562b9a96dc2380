"""Tries a release: its digests hold, and from each archive, unpacked into an empty folder, a newcomer runs the command in
an empty home, with loopback as the only network, and leaves nothing.

    python3 trial.py FOLDER CLIENT

FOLDER has the archives and their SHA256SUMS; CLIENT is a Python with the official MCP client.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

NEWCOMER = Path(__file__).resolve().parent / "newcomer.py"

# Runs its arguments with loopback as all the network there is.
ISOLATED = ["unshare", "--map-root-user", "--net", "sh", "-ec", 'ip link set lo up; exec "$0" "$@"']


def can_run(*words):
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def output(*words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def newcomer(command, home, client):
    """The demo, its block in the official Python client, a call, and the demo removed; each with the time it takes."""
    isolated = ISOLATED if can_run(*ISOLATED, "true") else []
    if not isolated:
        print("newcomer: no network namespace can be made here, so this machine's network is used")
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home)}

    def step(name, *words):
        start = time.monotonic()
        printed = output(*isolated, *words, cwd=home, env=environment)
        print(f"  {name:<22} {time.monotonic() - start:.1f} s")
        return printed

    step("--version", command, "--version")
    demo = json.loads(step("demo", command, "demo", "--json"))
    if not demo["attempts"] or not all(attempt["stopped"] is True for attempt in demo["attempts"]):
        sys.exit(f"the demo did not stop each attempt: {demo}")
    entry = json.loads(demo["block"])["mcpServers"]["toolward-demo"]
    called = json.loads(step("call from the client", client, "-I", "-B", NEWCOMER, json.dumps(entry)))
    if called["words"] != 2:
        sys.exit(f"the client did not get 2 words: {called}")
    step("demo --remove", command, "demo", "--remove")
    left = [str(path) for path in home.rglob("*") if not path.is_dir() or path.is_symlink()]
    if left:
        sys.exit(f"the demo left {left}")


def pages(prefix):
    """Each command of the help has a page, and `groff` formats all pages without a warning."""
    folder = prefix / "share/man/man1"
    listed = output(prefix / "bin/toolward", "--help").split("\nCommands:\n")[1].split("\n\n")[0]
    commands = re.findall(r"^  (\S+)", listed, re.M)
    missing = [command for command in commands if not (folder / f"toolward-{command}.1").is_file()]
    if missing or not commands:
        sys.exit(f"commands without a page: {missing}, of {commands}")
    if not shutil.which("groff"):
        return print("manual pages: not formatted, as there is no groff")
    for page in sorted(folder.iterdir()):
        formatted = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-z", page], stderr=subprocess.PIPE, text=True, check=False
        )
        if formatted.returncode or formatted.stderr:
            sys.exit(f"{page}: {formatted.stderr}")


def image(root):
    """The image has all that the command is linked with: nothing else exists once its root is the process's root."""
    if can_run("unshare", "--map-root-user", "--root", "/", "true"):
        output("unshare", "--map-root-user", "--root", root, "/usr/bin/toolward", "--version")
    else:
        print("image: not tried, as there are no user namespaces")


def main():
    folder, client = (Path(path).absolute() for path in sys.argv[1:])
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        archive = folder / line.split()[1]
        print(f"{archive.name}:", flush=True)
        trial = folder / "trial"
        root, home = trial / "root", trial / "home"
        for path in (root, home):
            path.mkdir(parents=True)
        if archive.suffix == ".deb":
            output("dpkg-deb", "--extract", archive, root)
            prefix = root / "usr"
        else:
            output("tar", "-xzf", archive, "-C", root)
            (prefix,) = root.glob("toolward-*") if "image" not in archive.name else [None]
        if prefix:
            newcomer(prefix / "bin/toolward", home, client)
            pages(prefix)
        else:
            image(root / "root")
        shutil.rmtree(trial)


if __name__ == "__main__":
    main()
