"""The tables as an SQLite database in memory, which a query can read and no more."""

import sqlite3
import time
from collections.abc import Iterable
from typing import Any

from tables import Table
from toolward_guest import ToolError

# What a query may do: SQLite asks before it runs.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_REFUSED_FUNCTIONS = {"load_extension", "fts3_tokenizer"}

# Names of what is refused, for the message.
_ACTIONS = {
    getattr(sqlite3, name): name.removeprefix("SQLITE_").replace("_", " ")
    for name in (
        "SQLITE_ALTER_TABLE",
        "SQLITE_ANALYZE",
        "SQLITE_ATTACH",
        "SQLITE_CREATE_INDEX",
        "SQLITE_CREATE_TABLE",
        "SQLITE_CREATE_TEMP_TABLE",
        "SQLITE_CREATE_TEMP_VIEW",
        "SQLITE_CREATE_TRIGGER",
        "SQLITE_CREATE_VIEW",
        "SQLITE_CREATE_VTABLE",
        "SQLITE_DELETE",
        "SQLITE_DETACH",
        "SQLITE_DROP_TABLE",
        "SQLITE_INSERT",
        "SQLITE_PRAGMA",
        "SQLITE_REINDEX",
        "SQLITE_SAVEPOINT",
        "SQLITE_TRANSACTION",
        "SQLITE_UPDATE",
    )
}

# Instructions of SQLite between two looks at the clock.
_STEPS = 20_000
# The answer's own bound: the host's is 4 MiB.
_MAX_CHARACTERS = 400_000
# Integers beyond it are not the same in every reader of JSON.
_EXACT = 2**53


class Database:
    """Tables to ask. Filled first; from the first query on it can only be read."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        limits = {
            sqlite3.SQLITE_LIMIT_LENGTH: 16 << 20,
            sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20,
            sqlite3.SQLITE_LIMIT_ATTACHED: 0,
            sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
            sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
        }
        for limit, value in limits.items():
            self._connection.setlimit(limit, value)
        # Sorting and intermediate results, too, stay in memory.
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute("PRAGMA trusted_schema = OFF")

    def add(self, table: Table) -> None:
        """Loads a table."""
        types = {"integer": "INTEGER", "number": "REAL", "text": "TEXT"}
        columns = ", ".join(
            f"{_quoted(name)} {types[kind]}" for name, kind in zip(table.columns, table.kinds)
        )
        places = ", ".join("?" * len(table.columns))
        self._connection.execute("BEGIN")
        self._connection.execute(f"CREATE TABLE {_quoted(table.name)} ({columns})")
        self._connection.executemany(f"INSERT INTO {_quoted(table.name)} VALUES ({places})", table)
        self._connection.execute("COMMIT")

    def query(
        self, sql: str, parameters: Iterable[Any], max_rows: int, deadline: float
    ) -> tuple[list[str], list[list[Any]], bool]:
        """The result's columns, its first rows, and whether there is more. At the deadline,
        a time of the monotonic clock, it is stopped."""
        values, prepared = tuple(parameters), False
        refused: list[str] = []
        late: list[bool] = []

        def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
            is_function = action == sqlite3.SQLITE_FUNCTION
            if action in _READING and not (is_function and second in _REFUSED_FUNCTIONS):
                return sqlite3.SQLITE_OK
            refused.append(second if is_function and second else _ACTIONS.get(action, "this"))
            return sqlite3.SQLITE_DENY

        def watch() -> int:
            if time.monotonic() < deadline:
                return 0
            late.append(True)
            return 1

        self._connection.set_authorizer(authorize)
        self._connection.set_progress_handler(watch, _STEPS)
        try:
            # Compiled once before it runs, so that a mistake in it and a failure on the
            # data are told apart.
            self._connection.execute(f"EXPLAIN {sql}", values).close()
            prepared = True
            cursor = self._connection.execute(sql, values)
            columns = [str(column[0]) for column in cursor.description]
            rows, truncated = _first_rows(cursor, max_rows)
        except sqlite3.Error as error:
            raise _failure(error, refused, bool(late), prepared) from None
        except OverflowError:
            raise ToolError("input_invalid", "a parameter is too large for SQLite") from None
        return columns, rows, truncated


def _first_rows(cursor: sqlite3.Cursor, max_rows: int) -> tuple[list[list[Any]], bool]:
    rows: list[list[Any]] = []
    characters = 0
    for row in cursor:
        if len(rows) == max_rows:
            return rows, True
        cells = [_shown(value) for value in row]
        characters += sum(len(str(cell)) + 4 for cell in cells)
        if characters > _MAX_CHARACTERS:
            return rows, True
        rows.append(cells)
    return rows, False


def _failure(error: sqlite3.Error, refused: list[str], late: bool, prepared: bool) -> ToolError:
    message = str(error)
    if refused:
        return ToolError("sql:not_allowed", f"only reading is allowed, not {refused[0]}")
    if late:
        return ToolError(
            "sql:too_slow", "the query took too long: join on fewer rows, or select less"
        )
    if "one statement at a time" in message:
        return ToolError("sql:not_allowed", "only one statement is allowed")
    if isinstance(error, sqlite3.ProgrammingError) and "binding" in message.lower():
        return ToolError("sql:parameters", message)
    return ToolError("sql:failed" if prepared else "sql:syntax", message)


def _shown(value: Any) -> str | int | float | None:
    """A value of SQLite as JSON."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    # Infinity has no JSON form.
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
