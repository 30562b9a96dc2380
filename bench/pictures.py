#!/usr/bin/env python3
"""Draws the pictures of the terminal in README and book from the golden screens of the tests. A picture holds what its
file has, and nothing else. With --check nothing is written, and it fails if something would change."""

import re
import sys
from html import escape
from pathlib import Path

import growth_page

ROOT = Path(__file__).resolve().parent.parent
SCREENS = ROOT / "tests/golden/screens"
PICTURES = ROOT / "docs/src/pictures"

# Columns of the terminals whose screens are drawn.
COLUMNS = 80
# In tenths of a pixel, so that no rounding differs between machines.
COLUMN, LINE, MARGIN, BASELINE = 84, 190, 160, 140

# Each screen, with the start of the first line that is no longer drawn.
SCREEN_ENDS = {"demo": "To give an agent", "approval": None, "held-update": None}

# A golden file has the symbol for the escape character in its place.
STYLE = re.compile("\u241b\\[([0-9;]*)m")
LOOKS = {
    "31": ' fill="#ff7b72"',
    "32": ' fill="#7ee787"',
    "33": ' fill="#e3b341"',
    "36": ' fill="#76e3ea"',
    "1": ' font-weight="bold"',
    "4": ' text-decoration="underline"',
}


def part(text, end):
    """The lines before the one that starts so, without empty ones at the end."""
    if end is None:
        return text
    lines = text.splitlines()
    last = [STYLE.sub("", line).startswith(end) for line in lines].index(True)
    return "\n".join(lines[:last]).rstrip("\n")


def screen(text):
    """The lines of a screen, broken where the terminal breaks them, each as its spans of a style and text."""
    styles, lines = set(), []
    for line in text.splitlines():
        spans, used = [], 0
        # Text and the codes of styles take turns.
        for number, piece in enumerate(STYLE.split(line)):
            if number % 2:
                for code in piece.split(";"):
                    if code in LOOKS:
                        # A colour replaces another.
                        styles = {one for one in styles if len(one) != 2 or len(code) != 2} | {code}
                    elif code in ("", "0"):
                        styles = set()
                    else:
                        sys.exit(f"the style {code} is not known")
                continue
            if not piece.isprintable() or "\u241b" in piece:
                sys.exit(f"{piece!r} can't be drawn")
            look = "".join(LOOKS[code] for code in LOOKS if code in styles)
            while piece:
                if used == COLUMNS:
                    lines.append(spans)
                    spans, used = [], 0
                shown, piece = piece[: COLUMNS - used], piece[COLUMNS - used :]
                used += len(shown)
                if spans and spans[-1][0] == look:
                    spans[-1][1] += shown
                else:
                    spans.append([look, shown])
        lines.append(spans)
    return lines


def drawn(lines):
    """Lines of a terminal as SVG: text on a dark ground, without a font or anything else from outside."""
    pixels = lambda tenths: f"{tenths / 10:g}"
    out = []
    for number, spans in enumerate(lines):
        column, y = 0, pixels(MARGIN + number * LINE + BASELINE)
        for look, text in spans:
            # If a font has other widths, the letters are still in their columns.
            x, length = pixels(MARGIN + column * COLUMN), pixels(len(text) * COLUMN)
            shown = escape(text, quote=False)
            out.append(f'<text x="{x}" y="{y}" textLength="{length}"{look}>{shown}</text>\n')
            column += len(text)
    width, height = (pixels(count * size + 2 * MARGIN) for count, size in [(COLUMNS, COLUMN), (len(lines), LINE)])
    style = f'font-size="14" fill="{growth_page.TEXT}" style="white-space: pre" xml:space="preserve"'
    return growth_page.svg(width, height, style, "".join(out))


def main():
    check = sys.argv[1:] == ["--check"]
    files = {}
    for name, end in SCREEN_ENDS.items():
        text = (SCREENS / f"{name}-{COLUMNS}-colours.txt").read_text()
        files[PICTURES / f"{name}.svg"] = drawn(screen(part(text, end)))
    files |= growth_page.files()
    stale = [path for path in PICTURES.iterdir() if path not in files]
    if check:
        stale += [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    else:
        for path, text in files.items():
            path.write_text(text)
    if stale:
        sys.exit("\n".join(f"{path} is stale" for path in stale) + "\nrun `bench/pictures.py`, and commit what it writes")
    print(f"{PICTURES.relative_to(ROOT)}: {len(files) - 1} pictures")


if __name__ == "__main__":
    main()
