"""CSV tables: their dialect, their columns, and the kinds of these."""

import csv
import math
import re
from collections.abc import Iterator
from typing import Any, TextIO

from toolward_guest import ToolError

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
MAX_COLUMNS = 500

# Numbers as people mean them: `007` is a code, not seven.
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII
)
_LONGEST_NUMBER = 40


class Table:
    """A table that is read twice: once to see what its columns hold, once for its rows.
    Cells are trimmed, and an empty one is NULL."""

    def __init__(self, name: str, source: TextIO, delimiter: str, header: bool) -> None:
        self.name = name
        self._source = source
        self._header = header
        self._delimiter = DELIMITERS.get(delimiter) or _delimiter_of(_first_line(source))
        self.columns: list[str] = []
        self.kinds: list[str] = []
        self.rows = 0
        self._examine()

    def __iter__(self) -> Iterator[list[Any]]:
        """The rows, each cell as its column's kind has it."""
        for _, cells in self._lines(self._header):
            yield [_value(cell, kind) for cell, kind in zip(cells, self.kinds)]

    def _examine(self) -> None:
        lines = self._lines(False)
        try:
            _, first = next(lines)
        except StopIteration:
            raise ToolError("csv:empty", f"the table {self.name} has no line") from None
        if len(first) > MAX_COLUMNS:
            raise ToolError(
                "csv:too_wide", f"the table {self.name} has more than {MAX_COLUMNS} columns"
            )
        self.columns = _named(first if self._header else [""] * len(first))
        self.kinds = ["integer"] * len(first)
        filled = [False] * len(first)
        for number, cells in self._lines(self._header):
            if len(cells) != len(first):
                raise ToolError(
                    "csv:ragged",
                    f"the table {self.name} has {len(first)} columns, but its line {number} "
                    f"has {len(cells)} fields",
                )
            self.rows += 1
            for at, cell in enumerate(cells):
                if cell:
                    filled[at] = True
                    self.kinds[at] = _wider(self.kinds[at], cell)
        self.kinds = [kind if is_filled else "text" for kind, is_filled in zip(self.kinds, filled)]

    def _lines(self, skip: bool) -> Iterator[tuple[int, list[str]]]:
        """The lines that are not empty, with their numbers."""
        self._source.seek(0)
        reader = csv.reader(self._source, delimiter=self._delimiter, strict=True)
        try:
            for cells in reader:
                if not cells:
                    continue
                if skip:
                    skip = False
                    continue
                yield reader.line_num, [cell.strip() for cell in cells]
        except csv.Error as error:
            raise ToolError(
                "csv:malformed", f"the table {self.name}, line {reader.line_num}: {error}"
            ) from None
        except UnicodeDecodeError as error:
            raise ToolError(
                "csv:not_utf8", f"the table {self.name} is not UTF-8: {error.reason}"
            ) from None


def _first_line(source: TextIO) -> str:
    try:
        return source.readline(65536)
    except UnicodeDecodeError:
        # Reported with the table's name when the lines are read.
        return ""


def _delimiter_of(line: str) -> str:
    """The delimiter that the line has most of, outside of quotes."""
    plain = re.sub(r'"[^"]*"', "", line)
    return max(DELIMITERS.values(), key=plain.count)


def _named(cells: list[str]) -> list[str]:
    """Column names. SQLite compares them in any case, so equal ones get a number."""
    names: list[str] = []
    taken: set[str] = set()
    for number, cell in enumerate(cells, start=1):
        base = cell.replace("\0", "")[:128] or f"column_{number}"
        name, again = base, 1
        while name.lower() in taken:
            again += 1
            name = f"{base}_{again}"
        taken.add(name.lower())
        names.append(name)
    return names


def _wider(kind: str, cell: str) -> str:
    """The kind of a column that was `kind` before this cell."""
    if kind == "integer":
        if _INTEGER.fullmatch(cell) and len(cell) < _LONGEST_NUMBER and abs(int(cell)) < 2**63:
            return "integer"
        kind = "number"
    if kind == "number" and len(cell) < _LONGEST_NUMBER:
        if _NUMBER.fullmatch(cell) and math.isfinite(float(cell)):
            return "number"
    return "text"


def _value(cell: str, kind: str) -> str | int | float | None:
    if not cell:
        return None
    return int(cell) if kind == "integer" else float(cell) if kind == "number" else cell
