#!/usr/bin/env python3
"""Measures two MCP servers on standard input and output side by side: they take turns, so that other load on the machine
affects both alike."""

import argparse
import json
import os
import statistics
import time

from mcp import Server, quantile

# Calls of one server before the other's turn.
TURN = 200
# Calls before the first that counts.
WARM = 500
# Starts of each server that are timed.
STARTS = 15
# Calls that are sent at once, and rounds of them.
AT_ONCE = 1_000
ROUNDS = 20


def row(what, figures):
    print(f"{what:<48} {figures[0]:>12} {figures[1]:>12}")


def starts(sides):
    """The median seconds of each server's starts."""
    times = [[], []]
    for _ in range(STARTS):
        for (command, _), of in zip(sides, times):
            start = time.perf_counter()
            with Server(command):
                of.append(time.perf_counter() - start)
    return [quantile(of, 50) for of in times]


def measure(sides, calls, client, servers):
    """Calls of two servers on the processors `servers`, by a client on the processors `client`."""
    os.sched_setaffinity(0, servers)
    with Server(sides[0][0]) as first, Server(sides[1][0]) as second:
        os.sched_setaffinity(0, client)
        both = [(first, sides[0][1], [], []), (second, sides[1][1], [], [])]
        for server, call, _, _ in both:
            for _ in range(WARM):
                server.call(*call)
        for _ in range(-(-calls // TURN)):
            for server, call, times, _ in both:
                times.extend(server.call(*call) for _ in range(TURN))
        for _ in range(ROUNDS):
            for server, call, _, rates in both:
                rates.append(server.calls_at_once(*call, AT_ONCE))
        return [(times, rates, server.memory()) for server, _, times, rates in both]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5_000, metavar="N")
    parser.add_argument(
        "--other-call", nargs=2, metavar=("TOOL", "JSON"), help="what the second server gets"
    )
    parser.add_argument("tool")
    parser.add_argument("json", help="the tool's arguments")
    parser.add_argument("first", help="a command that starts a server")
    parser.add_argument("second", help="another one")
    options = parser.parse_args()
    call = (options.tool, options.json)
    calls = [(tool, json.loads(text)) for tool, text in [call, options.other_call or call]]
    sides = list(zip([options.first, options.second], calls))

    row("start to the answer to `initialize`, median", [f"{1e3 * of:.1f} ms" for of in starts(sides)])
    processors = os.sched_getaffinity(0)
    one = {min(processors)}
    # Where client and server have no processor in common, each message wakes the other's. Where they have all in
    # common, it does so or not, as the kernel places them.
    places = [
        ("one processor", one, one),
        ("apart", one, processors - one),
        ("all processors", processors, processors),
    ]
    for what, client, servers in places:
        if not servers:
            continue
        figures = measure(sides, options.calls, client, servers)
        for name, of in [
            ("p50", lambda times: quantile(times, 50)),
            ("mean", statistics.mean),
            ("p99", lambda times: quantile(times, 99)),
        ]:
            row(f"{what}: a call, {name}", [f"{1e6 * of(times):.1f} µs" for times, _, _ in figures])
        rates = [f"{AT_ONCE / quantile(rates, 50):.0f}" for _, rates, _ in figures]
        row(f"{what}: {AT_ONCE} at once, calls/s, median", rates)
        row(f"{what}: resident", [f"{memory:.1f} MB" for _, _, memory in figures])


if __name__ == "__main__":
    main()
