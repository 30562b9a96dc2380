"""The book's page on growth: its table and its curves, from what `growth.py` measured."""

import json
import math
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs/src"
DATA = DOCS / "growth-data.json"
PAGE = DOCS / "growth.md"
BEGIN, END = "<!-- growth:begin -->\n", "<!-- growth:end -->"

TEXT = "#d7dde4"
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# Up to this exponent a curve counts as linear: two runs differ by as much.
LINEAR = 1.1

# All series, in the order of the page: what it is, what its sizes count, its unit.
SERIES = {
    "input-text": ("a call with one text as input", "bytes", "ms"),
    "input-list": ("a call with a list of numbers as input", "bytes", "ms"),
    "output-text": ("a call with one text as output", "bytes", "ms"),
    "output-list": ("a call with a list of numbers as output", "bytes", "ms"),
    "at-once": ("calls at once: time until all are answered", "calls", "ms"),
    "at-once-memory": ("calls at once: highest memory of the server", "calls", "MB"),
    "tools-start": ("tools installed: start of the server", "tools", "ms"),
    "tools-memory": ("tools installed: memory of the server", "tools", "MB"),
    "tools-list": ("tools installed: `tools/list`", "tools", "ms"),
    "tools-search": ("tools installed: a search", "tools", "ms"),
    "tools-call": ("tools installed: a call", "tools", "ms"),
    "bundles-start": ("bundles installed: start of the server", "bundles", "ms"),
    "bundles-memory": ("bundles installed: memory of the server", "bundles", "MB"),
    "bundles-install": ("bundles installed: one more install", "bundles", "ms"),
    "ledger-call": ("rows in the ledger: a call", "rows", "ms"),
    "ledger-start": ("rows in the ledger: start of the server", "rows", "ms"),
    "ledger-index": ("rows in the ledger: the first list, which makes the index", "rows", "ms"),
    "ledger-list": ("rows in the ledger: listing the newest 100", "rows", "ms"),
    "ledger-show": ("rows in the ledger: showing a call", "rows", "ms"),
    "ledger-verify": ("rows in the ledger: verifying all", "rows", "ms"),
    "ledger-size": ("rows in the ledger: size of the file", "rows", "MB"),
    "updates": ("bundles updated during calls: time until all are served", "bundles", "ms"),
    "updates-last": (
        "bundles updated during calls: time from the end of the last update until all are served",
        "bundles",
        "ms",
    ),
    "updates-call": ("bundles updated during calls: one of these calls, median", "bundles", "ms"),
    "updates-slow": ("bundles updated during calls: one of these calls, slowest", "bundles", "ms"),
    "component-compile": ("a component: first start, with compiling, until the first answer", "MB", "ms"),
    "component-map": ("a component: later start, until the first answer", "MB", "ms"),
    "component-call": ("a component: a call", "MB", "ms"),
    "nested-depth": ("nested calls, each made by the previous call", "calls", "ms"),
    "nested-sequence": ("nested calls, one after the other", "calls", "ms"),
}


def data():
    """The points of each series that was measured, by its id."""
    return json.loads(DATA.read_text())


def save(series):
    lines = (f"  {json.dumps(id)}: {json.dumps(series[id], separators=(',', ':'))}" for id in sorted(series))
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def exponent(points):
    """The slope of a straight line through the larger half of the points, at least two, both axes logarithmic. `None`
    if no two sizes differ."""
    half = points[-max(2, -(-len(points) // 2)) :]
    # A time of less than a microsecond counts as one.
    xs, ys = zip(*((math.log(size), math.log(max(figure, 1e-3))) for size, figure in half))
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / spread if spread else None


def shown(figure):
    """With three digits that count."""
    for most, digits in [(1, 3), (10, 2), (100, 1)]:
        if figure < most:
            return f"{figure:.{digits}f}"
    return f"{math.floor(figure + 0.5):,}"


def table(series):
    rows, linear = [], 0
    for id, points in series.items():
        title, counts, unit = SERIES[id]
        slope = exponent(points)
        is_linear = slope is not None and slope <= LINEAR
        linear += is_linear or slope is None
        verdict = "linear or better" if is_linear else "steeper, [why](#what-is-not-linear)"
        verdict = "one size only" if slope is None else verdict
        slope = "" if slope is None else f"{round(slope, 2) + 0.0:.2f}".replace("-", "−")
        sizes = " · ".join(f"{size:,}" for size, _ in points)
        figures = " · ".join(shown(figure) for _, figure in points)
        rows.append(f"| {title} | {sizes} {counts} | {figures} {unit} | {slope} | {verdict} |\n")
    pictures = (f"![{plain(id)}: a curve](pictures/growth-{id}.svg)\n" for id in series)
    return (
        f"{linear} of {len(series)} series are linear or better.\n\n"
        "| what | sizes | figures | exponent | |\n|---|---|---|---|---|\n" + "".join(rows) + "\n" + "".join(pictures)
    )


def plain(id):
    return SERIES[id][0].replace("`", "")


def curve(id, points):
    """A curve as SVG: both axes logarithmic, with a dashed line for what would be linear."""
    left, right, top, bottom = 56, 340, 52, 190
    _, counts, unit = SERIES[id]
    log = lambda value: math.log10(min(max(value, 1e-3), 1e12))
    pixels = lambda value: f"{math.floor(value * 10 + 0.5) / 10:g}"
    short = lambda value: f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
    first, (last, end) = points[0][0], points[-1]
    x_least, x_most = log(first), max(log(last), log(first) + 0.1)
    y_least = math.floor(min(log(figure) for _, figure in points))
    y_most = max(math.ceil(max(log(figure) for _, figure in points)), y_least + 1)
    x = lambda value: left + (log(value) - x_least) / (x_most - x_least) * (right - left)
    y = lambda value: bottom + (log(value) - y_least) / (y_most - y_least) * (top - bottom)
    out = []

    def text(x, y, anchor, text):
        out.append(f'<text x="{pixels(x)}" y="{pixels(y)}" text-anchor="{anchor}">{escape(text, quote=False)}</text>')

    def line(start, end, style):
        x1, y1, x2, y2 = map(pixels, (*start, *end))
        out.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>')

    # The title takes at most two lines.
    words = plain(id).split(" ")
    fitting = max(count for count in range(len(words) + 1) if len(" ".join(words[:count])) <= 48)
    text(16, 17, "start", " ".join(words[:fitting]))
    if words[fitting:]:
        text(16, 31, "start", " ".join(words[fitting:]))
    grid = 'stroke="#3a424d"'
    for size, _ in points:
        line((x(size), top), (x(size), bottom), grid)
        text(x(size), bottom + 16, "middle", short(size))
    for power in (10.0**power for power in range(y_least, y_most + 1)):
        line((left, y(power)), (right, y(power)), grid)
        text(left - 6, y(power) + 4, "end", short(power))
    text(right, 221, "end", counts)
    text(left - 6, top - 6, "end", unit)
    # A line that ends in the same point, as far down as the area goes.
    start = max(first, last * 10**y_least / max(end, 1e-3))
    line((x(start), y(end * start / last)), (x(last), y(end)), 'stroke="#e3b341" stroke-dasharray="3 4"')
    places = [(pixels(x(size)), pixels(y(figure))) for size, figure in points]
    joined = " ".join(map(",".join, places))
    out.append(f'<polyline points="{joined}" fill="none" stroke="#76e3ea" stroke-width="2"/>')
    out += (f'<circle cx="{x}" cy="{y}" r="3" fill="#76e3ea"/>' for x, y in places)
    return svg(360, 230, f'font-size="11" fill="{TEXT}"', "\n".join(out) + "\n")


def svg(width, height, style, contents):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#1c2128"/>\n'
        f'<g font-family="{FONTS}" {style}>\n{contents}</g>\n</svg>\n'
    )


def files():
    """The page and the curves, by their paths."""
    measured = data()
    series = {id: measured[id] for id in SERIES if measured.get(id)}
    before, rest = PAGE.read_text().split(BEGIN)
    page = {PAGE: before + BEGIN + table(series) + END + rest.split(END)[1]}
    return page | {DOCS / f"pictures/growth-{id}.svg": curve(id, points) for id, points in series.items()}
