#!/usr/bin/env python3
"""How times and memory of a built command grow with what it is given. The command is a black box with a separate home
directory: it is started, and called over MCP.

What was measured goes to docs/src/growth-data.json, in place of earlier figures of the same parts; `pictures.py`
makes the page's table and curves from it, too."""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import growth_page
from mcp import Server, median, quantile

ROOT = Path(__file__).resolve().parent.parent

# A driver that does what its input states, whatever its tool is called.
HOSTILE = "tests/guests/hostile/drivers/hostile/driver.wasm"

CONFIGURATION = """\
[[publisher]]
name = "growth"
key_files = ["key.pub.pem"]
prefixes = ["growth", "json"]
"""
# The tool may call itself, and deeper than by default. The memory of all levels counts together.
NESTED_POLICY = """
[limits]
nested_depth = 64
json_depth = 127
memory_bytes = { default = 268435456 }

[[grant]]
publisher = "growth"
tool = "growth.nest"
requires = ["tool:growth.nest"]
"""


def component(path):
    """A component that `cargo xtask guests` builds."""
    return (ROOT / path).read_bytes()


class Home:
    """Where the command runs: a home directory that is removed afterwards, and a publisher that it trusts."""

    def __init__(self, toolward, policy=""):
        self.toolward = toolward
        self.path = Path(tempfile.mkdtemp(prefix="toolward-growth-"))
        self.environment = {"HOME": str(self.path), "PATH": os.environ.get("PATH", "")}
        folder = self.path / ".config/toolward"
        folder.mkdir(parents=True)
        (folder / "toolward.toml").write_text(CONFIGURATION + policy)
        self.key = folder / "key.pem"
        self.run("publisher", "keys", "new", "--quiet", "--out", self.key)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self, *words):
        subprocess.run([self.toolward, *words], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def output(self, *words):
        ended = subprocess.run([self.toolward, *words], env=self.environment, check=True, stdout=subprocess.PIPE)
        return ended.stdout

    def write(self, id, tools, wasm, sequence=1, calls=None):
        """Writes a bundle with one driver for all its tools. Two releases differ in their versions, and not in what a
        model or a policy sees: otherwise an update would be held until a person accepts it."""
        folder = self.path / "work" / id
        version = f"1.0.{sequence}"
        requires = f"requires: {{ tools: [{calls}] }}\n" if calls else ""
        files = {
            "bundle.toml": f'id = "{id}"\nversion = "{version}"\nsequence = {sequence}\npublisher = "growth"\n'
            'created = "2026-11-01T00:00:00Z"\n',
            f"drivers/{id}.driver/driver.wasm": wasm,
            f"drivers/{id}.driver/DRIVER.md": f"---\nname: Driver of {id}\nid: {id}.driver\n"
            "description: Serves all tools of the bundle.\nversion: 1.0.0\nkind: component\ncomponent: driver.wasm\n"
            "implements:\n" + "".join(f'  - {{ tool: {tool}, version: "^1.0.0" }}\n' for tool in tools) + "---\n",
        }
        for tool in tools:
            files[f"tools/{tool}/TOOL.md"] = (
                f"---\nname: {tool.replace('.', ' ')}\nid: {tool}\n"
                f"description: Does what its driver does, for a measurement of growth.\nversion: {version}\n"
                f"idempotent: true\ntimeout_ms: 30000\n{requires}inputs: {{ type: object }}\n"
                "outputs: { type: object }\n---\n"
            )
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    def pack(self, id, tools, wasm, sequence=1, calls=None):
        """Packs and signs a bundle."""
        folder = self.write(id, tools, wasm, sequence, calls)
        archive = self.path / f"{id}-{sequence}.toolbundle"
        self.run("pack", "--quiet", folder, "--output", archive, "--key", self.key)
        return archive

    def install(self, archive):
        self.run("install", "--quiet", archive)

    def serve(self, *flags):
        return Server([self.toolward, "serve", "--stdio", *flags], env=self.environment)


def sizes(rig):
    """A call whose input or output grows: one long text, or a long list of numbers of seven digits."""
    numbers = lambda size: range(1_000_000, 1_000_000 + size // 8)
    takes = lambda value: ("growth_take", {"do": "count", "value": value})
    gives = lambda program: ("json_query", {"query": program})
    series = {
        "input-text": lambda size: takes("x" * size),
        "input-list": lambda size: takes(list(numbers(size))),
        "output-text": lambda size: gives(f'"x" * {size}'),
        "output-list": lambda size: gives(f"[range({numbers(size).start}; {numbers(size).stop})]"),
    }
    with Home(rig.toolward) as home:
        home.install(home.pack("growth.takes", ["growth.take"], component(HOSTILE)))
        query = component("examples/json-query/drivers/json-query/driver.wasm")
        home.install(home.pack("growth.gives", ["json.query"], query))
        with home.serve() as server:
            for id, call in series.items():
                for size in rig.sizes(100, 1_000, 10_000, 100_000, 1_000_000):
                    called = call(size)
                    yield id, size, 1e3 * median(301, lambda: server.call(*called))


def at_once(rig):
    """Many calls that are sent before the first answer is read."""
    call = ("growth_echo", {"do": "echo", "value": "two words"})
    with Home(rig.toolward) as home:
        home.install(home.pack("growth.echoes", ["growth.echo"], component(HOSTILE)))
        for size in rig.sizes(1, 3, 10, 30, 100, 300, 1_000):
            # A server for each size, as its memory may stay what it once was.
            with home.serve() as server:
                yield "at-once", size, 1e3 * median(101, lambda: server.calls_at_once(*call, size))
                yield "at-once-memory", size, server.memory("VmHWM:")


def tools(rig):
    """Many tools installed: what a start, a list, a search and a call cost then."""
    words = ["mail", "notes", "files", "pages", "tables", "images", "dates", "units"]
    # Of one bundle at most: a DRIVER.md has room for some more.
    in_bundle = 500

    def start(home):
        start = time.perf_counter()
        with home.serve():
            return time.perf_counter() - start

    def whole_list(server, size):
        params, seconds, listed = {}, 0.0, 0
        while params is not None:
            took, answer = server.request("tools/list", params)
            seconds += took
            listed += len(answer["tools"])
            params = {"cursor": answer["nextCursor"]} if "nextCursor" in answer else None
        assert listed == size, f"{listed} tools are listed instead of {size}"
        return seconds

    def search(server):
        took, answer = server.request("tools/call", {"name": "search_tools", "arguments": {"query": "mail tool"}})
        assert "growth.mail.tool-" in str(answer), f"a search finds no tool: {answer}"
        return took

    with Home(rig.toolward) as home:
        installed = 0
        for size in rig.sizes(10, 100, 1_000, 3_000, 10_000):
            while installed < size:
                end = min(size, installed + in_bundle)
                ids = [f"growth.{words[number % 8]}.tool-{number}" for number in range(installed, end)]
                home.install(home.pack(f"growth.many-{installed}", ids, component(HOSTILE)))
                installed = end
            yield "tools-start", size, 1e3 * median(101, lambda: start(home))
            with home.serve("--defer-above", str(size)) as server:
                yield "tools-list", size, 1e3 * median(101, lambda: whole_list(server, size))
                yield "tools-call", size, 1e3 * median(101, lambda: server.call("growth_mail_tool-0", {"do": "echo"}))
            with home.serve("--defer-above", "1") as server:
                yield "tools-search", size, 1e3 * median(101, lambda: search(server))
                yield "tools-memory", size, server.memory()


def bundles(rig):
    """Many bundles installed, with one component for all: a start, and one more install."""
    # Small: it is packed once for each bundle.
    echo = component("tests/guests/plain/drivers/echo/driver.wasm")
    pack = lambda home, number: home.pack(f"growth.one-{number}", [f"growth.does-{number}"], echo)

    def start(home):
        start = time.perf_counter()
        with home.serve():
            return time.perf_counter() - start

    with Home(rig.toolward) as home:
        installed = 0
        for size in rig.sizes(10, 100, 1_000, 3_000, 10_000):
            archives = [pack(home, number) for number in range(installed, size)]
            installed = size
            *first, last = archives
            for archive in first:
                home.install(archive)
            start_of_last = time.perf_counter()
            home.install(last)
            yield "bundles-install", size, 1e3 * (time.perf_counter() - start_of_last)
            yield "bundles-start", size, 1e3 * median(101, lambda: start(home))
            with home.serve("--defer-above", "1") as server:
                yield "bundles-memory", size, server.memory()


def ledger(rig):
    """Many rows in the ledger: what a start, a call and a look cost then."""
    call = ("growth_echo", {"do": "echo"})

    def timed(run):
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    with Home(rig.toolward, "[ledger]\nmax = 17179869184\n") as home:
        home.install(home.pack("growth.echoes", ["growth.echo"], component(HOSTILE)))
        rows = 0
        for size in rig.sizes(10_000, 100_000, 1_000_000, 10_000_000):
            with home.serve() as server:
                # Each call has one row, since it changes nothing.
                for _ in range(rows, size, 1_000):
                    server.calls_at_once(*call, 1_000)
            rows = size
            with home.serve() as server:
                yield "ledger-call", size, 1e3 * median(301, lambda: server.call(*call))
            yield "ledger-start", size, 1e3 * median(101, lambda: timed(lambda: home.serve().end()))
            yield "ledger-index", size, 1e3 * timed(lambda: home.run("ledger", "list"))
            yield "ledger-list", size, 1e3 * median(101, lambda: timed(lambda: home.run("ledger", "list")))
            newest = home.output("ledger", "list", "--limit", "1", "--json", "--tool", "growth.echo")
            invocation = json.loads(newest)["record"]["body"]["invocation"]
            yield "ledger-show", size, 1e3 * median(101, lambda: timed(lambda: home.run("ledger", "show", invocation)))
            yield "ledger-verify", size, 1e3 * timed(lambda: home.run("ledger", "verify"))
            folder = home.path / ".local/state/toolward"
            yield "ledger-size", size, sum(file.stat().st_size for file in folder.rglob("records*")) / 1e6


def updates(rig):
    """Bundles that are updated one after the other, by a command each, while a server runs calls."""
    # Small: it is packed once for each release.
    echo = component("tests/guests/plain/drivers/echo/driver.wasm")

    def update(home, server, archives, version):
        ended = []

        def install():
            for archive in archives:
                home.install(archive)
            ended.append(time.perf_counter())

        def is_served():
            tools = server.request("tools/list", {})[1]["tools"]
            versions = [tool.get("_meta", {}).get("toolward/tool", {}).get("version") for tool in tools]
            return versions.count(version) == len(archives)

        calls, start = [], time.perf_counter()
        thread = threading.Thread(target=install)
        thread.start()
        while True:
            # Calls alone for 50 ms between two lists, so that the list costs little.
            looked = time.perf_counter()
            while time.perf_counter() - looked < 0.05:
                calls.append(server.call("growth_echo", {"do": "echo"}))
            if ended and is_served():
                end = time.perf_counter()
                return end - start, end - ended[0], quantile(calls, 50), quantile(calls, 100)
            assert ended or thread.is_alive(), "an update failed"
            assert time.perf_counter() - start < 180, f"the server does not serve {version} of all bundles"

    with Home(rig.toolward) as home:
        release = lambda number, sequence: home.pack(
            f"growth.moving-{number}", [f"growth.moves-{number}"], echo, sequence
        )
        home.install(home.pack("growth.steady", ["growth.echo"], component(HOSTILE)))
        all_sizes = rig.sizes(1, 3, 10, 30, 100)
        for number in range(all_sizes[-1]):
            home.install(release(number, 1))
        sequence = 1
        with home.serve("--defer-above", "1000") as server:
            for size in all_sizes:
                rounds = []
                for _ in range(3 if size <= 10 else 1):
                    sequence += 1
                    archives = [release(number, sequence) for number in range(size)]
                    rounds.append(update(home, server, archives, f"1.0.{sequence}"))
                for id, times in zip(["updates", "updates-last", "updates-call", "updates-slow"], zip(*rounds)):
                    yield id, size, 1e3 * quantile(times, 50)


def components(rig):
    """A driver whose component grows by code that nothing runs: compiling it, mapping what was compiled, and a call."""
    call = ("growth_large", {"do": "echo"})

    def answered(home, folder, cache):
        """A server, and the seconds until it answered its first call."""
        start = time.perf_counter()
        server = home.serve("--dev", folder, "--cache-dir", cache)
        server.call(*call)
        return server, time.perf_counter() - start

    def one_start(*arguments):
        server, seconds = answered(*arguments)
        server.end()
        return seconds

    with Home(rig.toolward) as home:
        for size in rig.sizes(1, 2, 4, 8, 16, 32):
            # Unsigned: packing would compress it, which takes longer than all the rest.
            wasm = grown(component(HOSTILE), size * 1_000_000)
            start = (home, home.write("growth.larger", ["growth.large"], wasm), home.path / f"compiled-{size}")
            yield "component-compile", size, 1e3 * one_start(*start)
            yield "component-map", size, 1e3 * median(15, lambda: one_start(*start))
            with answered(*start)[0] as server:
                yield "component-call", size, 1e3 * median(301, lambda: server.call(*call))


def grown(wasm, size):
    """The component with a module after its other sections that is compiled and never run, of about `size` bytes
    together."""

    def leb(value, signed=False):
        out = bytearray()
        while not (-0x40 <= value < 0x40 if signed else value < 0x80):
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value & 0x7F])

    def section(id, contents):
        return bytes([id]) + leb(len(contents)) + contents

    def body(function):
        """A function that no other one equals: `a = (a * constant) ^ b`, then `b = a + b`, again and again."""
        out = bytearray([0])
        for part in range(40):
            constant = ((function + 1) * 0x9E37_79B9_7F4A_7C15 + part * 0xD1B5_4A32_D192_ED03) % 2**64
            out += bytes([0x20, 0, 0x42]) + leb(constant - 2**64 * (constant >> 63), signed=True)
            out += bytes([0x7E, 0x20, 1, 0x85, 0x22, 0, 0x20, 1, 0x7C, 0x21, 1])
        return bytes(out + bytes([0x20, 0, 0x0B]))

    bodies, functions = bytearray(), 0
    while len(bodies) < size - len(wasm):
        code = body(functions)
        bodies += leb(len(code)) + code
        functions += 1
    # All functions are of the first type: (i64, i64) -> i64.
    module = b"\0asm\1\0\0\0" + section(1, bytes([1, 0x60, 2, 0x7E, 0x7E, 1, 0x7E]))
    module += section(3, leb(functions) + bytes(functions)) + section(10, leb(functions) + bytes(bodies))
    return wasm + section(1, module)


def nested(rig):
    """Calls of a tool by a tool: each made by the previous call, and one after the other."""
    depth = lambda size: {"do": "nest", "chain": ["growth.nest"] * size, "last": {"do": "count"}}
    sequence = lambda size: {"do": "call-tool", "tool": "growth.nest", "input": {"do": "count"}, "times": size}
    # The answer of each level has two objects more, and neither the host nor a client reads JSON of more than 127 levels.
    series = {
        "nested-depth": (rig.sizes(1, 2, 4, 8, 16, 32, 60), depth),
        "nested-sequence": (rig.sizes(1, 2, 4, 8, 16, 32, 64), sequence),
    }
    with Home(rig.toolward, NESTED_POLICY) as home:
        home.install(home.pack("growth.nests", ["growth.nest"], component(HOSTILE), calls="growth.nest"))
        with home.serve() as server:
            for id, (all_sizes, arguments) in series.items():
                for size in all_sizes:
                    called = ("growth_nest", arguments(size))
                    _, answer = server.request("tools/call", dict(zip(["name", "arguments"], called)))
                    # The driver gives a refused call back as a value, within those of all levels above.
                    assert "'err':" not in str(answer), f"a nested call failed: {answer}"
                    yield id, size, 1e3 * median(301, lambda: server.call(*called))


PARTS = {
    "sizes": sizes,
    "at-once": at_once,
    "tools": tools,
    "bundles": bundles,
    "ledger": ledger,
    "updates": updates,
    "components": components,
    "nested": nested,
}


class Rig:
    """The command that is measured, and at which sizes."""

    def __init__(self, toolward, quick):
        self.toolward, self.quick = toolward, quick

    def sizes(self, *all_sizes):
        return all_sizes[:3] if self.quick else all_sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the three smallest sizes")
    parser.add_argument("toolward", help="a built command")
    parser.add_argument("part", nargs="*", help=f"one of {', '.join(PARTS)}; without it, all are measured")
    options = parser.parse_args()
    if unknown := set(options.part) - PARTS.keys():
        parser.error(f"no part is called {', '.join(unknown)}")
    rig = Rig(os.path.abspath(options.toolward), options.quick)
    for name, measure in PARTS.items():
        if options.part and name not in options.part:
            continue
        print(name)
        measured = {}
        for id, size, figure in measure(rig):
            print(f"{id:>20} {size:>9} {figure:>12.3f}")
            measured.setdefault(id, []).append([size, round(figure, 3)])
        # After each part, so that a failure of a later one loses nothing.
        growth_page.save({**growth_page.data(), **measured})
    for path, text in growth_page.files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
