#!/usr/bin/env python3
"""Measures MCP servers on standard input and output side by side: they take turns, so that other load on the machine
affects all alike. Prints a table of medians, with the ratio to the first server."""

import argparse
import json
import os
import statistics

from mcp import Server, proportional_megabytes, quantile, started

# Calls of one server before the next one's turn.
TURN = 200
# Calls before the first that counts.
WARM = 500
# Starts of each server that are timed in each round.
STARTS = 5
# Calls that are sent at once, and how often in each round.
AT_ONCE = 1_000
BURSTS = 5


class Side:
    """One of the servers: how it is started, what it is asked, and what was measured, a value for each round."""

    def __init__(self, name, command, tool, arguments):
        self.name, self.command = name, command
        self.call = (tool, json.loads(arguments))
        self.rounds = []


def round_of(sides, calls, client, servers):
    """One round of all servers, which run on the processors `servers`; their client runs on `client`."""
    os.sched_setaffinity(0, servers)
    starts = [[] for _ in sides]
    for _ in range(STARTS):
        for side, times in zip(sides, starts):
            times.append(started(side.command))
    running = [Server(side.command) for side in sides]
    os.sched_setaffinity(0, client)
    times, bursts = [[] for _ in sides], [[] for _ in sides]
    for server, side in zip(running, sides):
        for _ in range(WARM):
            server.call(*side.call)
    for _ in range(-(-calls // TURN)):
        for server, side, of in zip(running, sides, times):
            of.extend(server.call(*side.call) for _ in range(TURN))
    for _ in range(BURSTS):
        for server, side, of in zip(running, sides, bursts):
            of.append(server.calls_at_once(*side.call, AT_ONCE))
    for index, (server, side) in enumerate(zip(running, sides)):
        memory, processes = proportional_megabytes(server.process.pid)
        side.rounds.append(
            (
                1e3 * quantile(starts[index], 50),
                1e6 * quantile(times[index], 50),
                1e6 * quantile(times[index], 99),
                AT_ONCE / quantile(bursts[index], 50),
                memory,
                processes,
            )
        )
        server.end()


HEADS = ["initialize, ms", "p50, µs", "p99, µs", "calls/s", "PSS, MB", "processes"]
DIGITS = [1, 1, 0, 0, 1, 0]


def table(sides):
    """Medians of the rounds, and in brackets the median of the ratios to the first server in the same round."""
    print(f"| | {' | '.join(HEADS)} |\n|---|{'---|' * len(HEADS)}")
    for side in sides:
        cells = []
        for column, digits in enumerate(DIGITS):
            values = [figures[column] for figures in side.rounds]
            ratios = [a[column] / b[column] for a, b in zip(side.rounds, sides[0].rounds)]
            cell = f"{statistics.median(values):,.{digits}f}"
            if side is not sides[0] and column < len(HEADS) - 1:
                cell += f" ({statistics.median(ratios):.2f} ×)"
            cells.append(cell)
        print(f"| {side.name} | {' | '.join(cells)} |")
    print()


def load():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000, metavar="N", help="calls in each round")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument(
        "--server",
        nargs=4,
        action="append",
        required=True,
        metavar=("NAME", "COMMAND", "TOOL", "JSON"),
        help="a server, the command that starts it, and the call that it gets; repeat it for each server",
    )
    options = parser.parse_args()
    processors = os.sched_getaffinity(0)
    one = {min(processors)}
    # If client and server have no processor in common, each message wakes the other's. If they have all in common, it
    # does so or not, as the kernel places them.
    places = [
        ("one processor", one, one),
        ("client and server apart", one, processors - one),
        ("all processors", processors, processors),
    ]
    for what, client, servers in places:
        if not servers:
            continue
        sides = [Side(*given) for given in options.server]
        before = load()
        for _ in range(options.rounds):
            round_of(sides, options.calls, client, servers)
        os.sched_setaffinity(0, processors)
        print(
            f"{what}: {options.rounds} rounds of {options.calls} calls, {BURSTS} times {AT_ONCE} at once, "
            f"{STARTS} starts; load {before} before, {load()} after\n"
        )
        table(sides)


if __name__ == "__main__":
    main()
