"""`csv.sql`: answers an SQL query over CSV tables."""

# Named here because the component holds only what is imported: `open` looks for it later.
import encodings.utf_8_sig
import io
import os
import time
from collections.abc import Iterator
from typing import Any, TextIO

from database import Database
from tables import Table
from toolward_guest import Call, ToolError, tool

# The folder of the contract's `requires.workspace`; tests put another in its place.
DATA = "/data"
MAX_FILE = 16 << 20
# Names in the message about a file that is not there.
MAX_NAMES = 20
# Time that is kept for the answer when a query is stopped.
RESERVE_S = 1.0


@tool("csv.sql")
def query(call: Call) -> dict[str, Any]:
    given = call.input
    deadline = time.monotonic() + call.remaining_ms / 1000 - RESERVE_S
    database, tables = Database(), []
    for name, source in sources(given):
        with source:
            table = Table(
                name, source, given.get("delimiter", "auto"), given.get("header", True)
            )
            database.add(table)
        tables.append(
            {
                "name": name,
                "rows": table.rows,
                "columns": [
                    {"name": column, "kind": kind}
                    for column, kind in zip(table.columns, table.kinds)
                ],
            }
        )
    columns, rows, truncated = database.query(
        given["query"],
        given.get("parameters", []),
        given.get("max_rows", 100),
        deadline,
    )
    return {"columns": columns, "rows": rows, "truncated": truncated, "tables": tables}


def sources(given: dict[str, Any]) -> Iterator[tuple[str, TextIO]]:
    """Each table's name and text."""
    taken: set[str] = set()
    for kind in ("tables", "files"):
        for name, value in given.get(kind, {}).items():
            if name.lower() in taken or name.lower().startswith("sqlite_"):
                raise ToolError("input_invalid", f"the table name {name} is taken")
            taken.add(name.lower())
            yield name, io.StringIO(value, newline="") if kind == "tables" else opened(value)


def opened(path: str) -> TextIO:
    """A file below the folder. What leads outside is refused here with a reason; the
    sandbox has no other files in any case."""
    if path.startswith("/") or ".." in path.split("/"):
        raise ToolError("input_invalid", f"{path} leads out of {DATA}")
    try:
        source = open(f"{DATA}/{path}", encoding="utf-8-sig", newline="")
        size = os.fstat(source.fileno()).st_size
    except OSError as error:
        raise ToolError(
            "csv:no_file", f"{path} can't be read: {error.strerror}.{names()}"
        ) from None
    if size > MAX_FILE:
        source.close()
        raise ToolError("csv:too_large", f"{path} is larger than {MAX_FILE >> 20} MiB")
    return source


def names() -> str:
    """The tables that there are, for somebody who guessed."""
    try:
        found = sorted(name for name in os.listdir(DATA) if name.endswith((".csv", ".tsv")))
    except OSError:
        return ""
    more = ", …" if len(found) > MAX_NAMES else ""
    return f" There are: {', '.join(found[:MAX_NAMES])}{more}" if found else ""
