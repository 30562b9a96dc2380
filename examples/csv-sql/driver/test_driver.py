import tempfile
import unittest
from pathlib import Path
from typing import Any

import driver
from driver import query
from toolward_guest import ToolError, invoke


def answer(sql: str, **given: Any) -> Any:
    return invoke(query, {"query": sql, **given}).value


class Case(unittest.TestCase):
    def fails(self, code: str, sql: str, **given: Any) -> ToolError:
        with self.assertRaises(ToolError) as raised:
            answer(sql, **given)
        self.assertEqual(raised.exception.code, code, raised.exception)
        return raised.exception


class Tables(Case):
    def kinds(self, csv: str, **given: Any) -> dict[str, str]:
        columns = answer("SELECT 1", tables={"t": csv}, **given)["tables"][0]["columns"]
        return {column["name"]: column["kind"] for column in columns}

    def test_a_column_is_of_the_kind_of_all_its_cells(self) -> None:
        csv = "a,b,c,d,e,f\n1,1,007,,9223372036854775808,1e5\n-2,.5,1,,1,\n"
        kinds = ["integer", "number", "text", "text", "number", "number"]
        self.assertEqual(self.kinds(csv), dict(zip("abcdef", kinds)))
        for cell in (".", "+", "1.", "e5", "1e999", "1_0", "٣", "nan", "0x10", "1" * 50):
            self.assertEqual(self.kinds(f"a\n{cell}\n"), {"a": "text"}, cell)

    def test_columns_get_names_that_differ(self) -> None:
        csv = 'Net "amount",a,A,,a_2\n1,2,3,4,5\n'
        names = ['Net "amount"', "a", "A_2", "column_4", "a_2_2"]
        # A quote inside a field that is not quoted stands for itself.
        self.assertEqual(list(self.kinds(csv)), names)
        rows = answer('SELECT "Net ""amount""", "A_2" FROM t', tables={"t": csv})["rows"]
        self.assertEqual(rows, [[1, 3]])

    def test_the_delimiter_is_the_one_that_the_first_line_has_most_of(self) -> None:
        for delimiter in ",;\t|":
            csv = f'"x,,,;;;"{delimiter}b\n"1\n2"{delimiter}3\n'
            result = answer("SELECT * FROM t", tables={"t": csv})
            self.assertEqual(result["rows"], [["1\n2", 3]])
        self.assertEqual(self.kinds("a,b\n1,2\n", delimiter="tab"), {"a,b": "text"})

    def test_empty_cells_are_null_and_empty_lines_nothing(self) -> None:
        csv = "a,b\r\n1,\r\n\r\n , x \r\n"
        result = answer("SELECT * FROM t", tables={"t": csv})
        self.assertEqual(result["rows"], [[1, None], [None, "x"]])
        self.assertEqual(result["tables"][0]["rows"], 2)

    def test_what_is_no_table_is_refused_with_its_place(self) -> None:
        self.fails("csv:empty", "SELECT 1", tables={"t": ""})
        ragged = self.fails("csv:ragged", "SELECT 1", tables={"t": "a,b\n1,2\n3\n"})
        self.assertIn("line 3", ragged.message)
        self.fails("csv:malformed", "SELECT 1", tables={"t": 'a\n"open\n'})
        self.fails("csv:too_wide", "SELECT 1", tables={"t": "," * 600})
        self.fails("input_invalid", "SELECT 1", tables={"t": "a", "T": "a"})
        self.fails("input_invalid", "SELECT 1", tables={"sqlite_x": "a"})


class Files(Case):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "data")
        (self.folder / "2026").mkdir(parents=True)
        self.addCleanup(setattr, driver, "DATA", driver.DATA)
        driver.DATA = str(self.folder)

    def test_files_and_texts_are_joined(self) -> None:
        (self.folder / "2026/sales.csv").write_bytes("\ufeffcity,amount\nKöln,5\n".encode())
        result = answer(
            "SELECT amount, country FROM sales JOIN cities USING (city)",
            files={"sales": "2026/sales.csv"},
            tables={"cities": "city,country\nKöln,DE\n"},
        )
        self.assertEqual(result["rows"], [[5, "DE"]])

    def test_only_the_folder_is_read(self) -> None:
        self.folder.with_name("secret.csv").write_text("a\n1\n")
        for path in ("../secret.csv", "2026/../../secret.csv", "/etc/passwd"):
            self.fails("input_invalid", "SELECT 1", files={"t": path})

    def test_what_can_not_be_read_says_what_can(self) -> None:
        (self.folder / "sales.csv").write_text("a\n1\n")
        missing = self.fails("csv:no_file", "SELECT 1", files={"t": "sale.csv"})
        self.assertIn("sales.csv", missing.message)
        self.fails("csv:no_file", "SELECT 1", files={"t": "2026"})
        (self.folder / "latin.csv").write_bytes(b"a\n\xe9\n")
        self.fails("csv:not_utf8", "SELECT 1", files={"t": "latin.csv"})


class Queries(Case):
    def test_only_reading_is_allowed(self) -> None:
        for sql in (
            "ATTACH '/data/x.db' AS x",
            "CREATE TABLE u (a)",
            "CREATE TEMP TABLE u (a)",
            "CREATE VIRTUAL TABLE u USING fts5(a)",
            "DELETE FROM t",
            "DROP TABLE t",
            "INSERT INTO t VALUES (1)",
            "PRAGMA table_info(t)",
            "SELECT * FROM pragma_database_list",
            "SELECT load_extension('x')",
            "UPDATE t SET a = 2",
            "VACUUM INTO '/data/x.db'",
            "BEGIN",
            "SELECT 1; SELECT 2",
        ):
            with self.subTest(sql):
                self.fails("sql:not_allowed", sql, tables={"t": "a\n1\n"})

    def test_mistakes_come_with_the_message_of_sqlite(self) -> None:
        for sql, message in {
            "SELEC 1": "syntax error",
            "SELECT b FROM t": "no such column: b",
            "SELECT 1 FROM u": "no such table: u",
            "-- nothing": "incomplete input",
        }.items():
            self.assertIn(message, self.fails("sql:syntax", sql, tables={"t": "a\n1\n"}).message)
        self.fails("sql:parameters", "SELECT ?", parameters=[])
        self.fails("sql:failed", "SELECT abs(-9223372036854775808)")

    def test_an_endless_query_is_stopped(self) -> None:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        before, driver.RESERVE_S = driver.RESERVE_S, 29.9
        self.addCleanup(setattr, driver, "RESERVE_S", before)
        self.fails("sql:too_slow", endless)

    def test_more_than_was_asked_for_is_left_out(self) -> None:
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT i FROM n"
        self.assertFalse(answer(many.format(5), max_rows=5)["truncated"])
        cut = answer(many.format(6), max_rows=5)
        self.assertEqual((len(cut["rows"]), cut["truncated"]), (5, True))
        long = "SELECT hex(zeroblob(100000)) FROM t"
        cut = answer(long, tables={"t": "a\n" + "1\n" * 9})
        self.assertEqual((len(cut["rows"]), cut["truncated"]), (1, True))

    def test_every_value_has_a_json_form(self) -> None:
        row = answer("SELECT NULL, x'00ff', 9007199254740993, 9e999, -1.5, ?, ?", parameters=[True, "é"])
        self.assertEqual(
            row["rows"], [[None, "00ff", "9007199254740993", "inf", -1.5, 1, "é"]]
        )


if __name__ == "__main__":
    unittest.main()
