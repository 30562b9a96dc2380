"""A client of an MCP server on standard input and output that measures the time of its requests, and the memory of
processes."""

import json
import os
import subprocess
import threading
import time


class Server:
    """A server that was started, and its client."""

    def __init__(self, command, **options):
        self.name = command if isinstance(command, str) else " ".join(map(str, command))
        self.process = subprocess.Popen(
            f"exec {command}" if isinstance(command, str) else command,
            shell=isinstance(command, str),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            **options,
        )
        self.to, self.source = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.buffer = b""
        self.next_id = 0
        self.request(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "toolward-bench", "version": "1"},
            },
        )
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def write(self, data):
        while data:
            data = data[os.write(self.to, data) :]

    def lines(self):
        """The next lines, at least one."""
        while b"\n" not in self.buffer:
            data = os.read(self.source, 1 << 16)
            if not data:
                raise SystemExit(f"`{self.name}` has ended")
            self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        return lines

    def message(self, method, params):
        self.next_id += 1
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"

    def request(self, method, params):
        """The seconds from sending a request to its answer, and its result. The answer is parsed afterwards."""
        message = self.message(method, params)
        start = time.perf_counter()
        self.write(message)
        while True:
            lines = self.lines()
            seconds = time.perf_counter() - start
            for result in map(self.result, lines):
                if result is not None:
                    return seconds, result

    def result(self, line):
        """The result in a line; `None` for a notification."""
        answer = json.loads(line)
        result = answer.get("result")
        if "error" in answer or (result or {}).get("isError"):
            raise SystemExit(f"`{self.name}`: a call failed: {line.decode()}")
        return result

    def call(self, tool, arguments):
        """The seconds of a tool call."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})[0]

    def calls_at_once(self, tool, arguments, count):
        """The seconds of many calls, all sent before the first answer is read."""
        params = {"name": tool, "arguments": arguments}
        messages = b"".join(self.message("tools/call", params) for _ in range(count))
        answers = []
        start = time.perf_counter()
        sender = threading.Thread(target=self.write, args=[messages])
        sender.start()
        while len(answers) < count:
            answers += [line for line in self.lines() if b'"id"' in line]
        seconds = time.perf_counter() - start
        sender.join()
        for line in answers:
            self.result(line)
        return seconds

    def end(self):
        """Closes its input, and waits until it has ended."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)

    def memory(self, line="VmRSS:"):
        """Megabytes that it and its children have resident; with `VmHWM:` the most that each had."""
        return megabytes(self.process.pid, line)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            return self.end()
        self.process.kill()
        self.process.wait()


def megabytes(process, line):
    try:
        with open(f"/proc/{process}/status") as status:
            own = sum(int(found.split()[1]) for found in status if found.startswith(line))
        with open(f"/proc/{process}/task/{process}/children") as children:
            return own * 1024 / 1e6 + sum(megabytes(child, line) for child in children.read().split())
    except FileNotFoundError:
        return 0.0


def started(command):
    """The seconds from the start of a server to its answer to `initialize`."""
    start = time.perf_counter()
    with Server(command):
        return time.perf_counter() - start


def proportional_megabytes(process):
    """Megabytes of a process and its children, a shared page divided among its users; and how many processes."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as rollup:
            memory = sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) * 1024 / 1e6
        with open(f"/proc/{process}/task/{process}/children") as children:
            below = [proportional_megabytes(child) for child in children.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0
    return memory + sum(of for of, _ in below), 1 + sum(count for _, count in below)


def quantile(values, percent):
    """The value that so many of a hundred do not exceed."""
    return sorted(values)[(len(values) - 1) * percent // 100]


def median(runs, run, budget=3.0):
    """The median of as many runs as fit into `budget` seconds, at least one and at most `runs`. One more goes before
    them, if it takes at most half of that."""
    start = time.monotonic()
    times = [run()]
    if time.monotonic() - start < budget / 2:
        times = []
    while not times or (len(times) < runs and time.monotonic() - start < budget):
        times.append(run())
    return quantile(times, 50)
