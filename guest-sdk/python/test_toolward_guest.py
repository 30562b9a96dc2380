"""Tests of the guest library outside a component: `python3 -m unittest`."""

import dataclasses
import unittest
from typing import Any

import toolward_guest
from toolward_guest import (
    Answer,
    Block,
    Bucket,
    Call,
    Grants,
    HttpRequest,
    Output,
    Questions,
    Response,
    ToolError,
    http,
    invoke,
    log,
    progress,
    secrets,
    tool,
    tools,
)


class Values(unittest.TestCase):
    def test_a_value_goes_through_json(self) -> None:
        @dataclasses.dataclass
        class Point:
            x: int

        output = invoke(lambda call: {"points": [Point(call.input)]}, 1)
        self.assertEqual(output.value, {"points": [{"x": 1}]})

    def test_a_value_without_a_json_form_is_an_error(self) -> None:
        for value in (float("nan"), object(), "\ud800", {"a": b"bytes"}):
            with self.assertRaises(ToolError) as raised:
                invoke(lambda call: call.context, {}, context=value)
            self.assertEqual(raised.exception.code, "internal")

    def test_blocks_are_checked_where_they_are_made(self) -> None:
        output = invoke(lambda call: Output(1, [Block.text("one", audience="user")]), {})
        self.assertEqual(output.content[0].audience, ("user",))
        text: Any = "text"
        for wrong in (
            lambda: Block.image("image/png", text),
            lambda: Block.text(text.encode()),
            lambda: Block.link("https://a.example", "a", size=1.5),
        ):
            self.assertRaises(TypeError, wrong)
        self.assertRaises(ValueError, lambda: Block.text("a", audience="nobody"))

    def test_a_wait_makes_an_error_retryable(self) -> None:
        error = ToolError("rate_limited", "later", retry_after_ms=5)
        self.assertTrue(error.retryable)

    def test_a_wait_has_64_bits(self) -> None:
        for given, kept in {1 << 70: (1 << 64) - 1, float("inf"): (1 << 64) - 1, -5: 0}.items():
            error = ToolError("rate_limited", "later", retry_after_ms=given)
            self.assertEqual(error.retry_after_ms, kept)

    def test_a_field_that_cannot_be_shown_does_not_stop_a_record(self) -> None:
        class Odd:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        shown = toolward_guest._shown_fields({"odd": Odd(), "row": 7})
        self.assertEqual(shown, '{"odd": "Odd that can\'t be shown", "row": 7}')
        loop: list[Any] = [Odd()]
        loop.append(loop)
        shown = toolward_guest._shown_fields({"loop": loop})
        self.assertEqual(shown, '{"loop": "list that can\'t be shown"}')

    def test_a_tool_is_defined_once(self) -> None:
        tool("test.once")(lambda call: None)
        self.assertRaises(ValueError, lambda: tool("test.once")(lambda call: None))

    def test_the_module_of_a_tool_exports_the_handler(self) -> None:
        @tool("test.handler")
        def here(call: Call) -> None:
            return None

        self.assertIs(globals()["Handler"], toolward_guest.Handler)


class Asking(unittest.TestCase):
    def greet(self, call: Call) -> Any:
        if call.resume is None:
            return Questions().form("who", "Whom?", {"type": "object"}).state("Hello")
        answer = call.resume.answer("who")
        if not answer.accepted:
            raise ToolError("greet:nobody", answer.status)
        return f"{call.resume.state}, {answer.value['name']}!"

    def test_answers_come_in_a_call_of_their_own(self) -> None:
        output = invoke(self.greet, {}, answers={"who": Answer("accepted", {"name": "Ada"})})
        self.assertEqual(output.value, "Hello, Ada!")

    def test_nobody_answers(self) -> None:
        with self.assertRaises(ToolError) as raised:
            invoke(self.greet, {})
        self.assertEqual(raised.exception.code, "input_unavailable")
        with self.assertRaises(ToolError) as raised:
            invoke(self.greet, {}, answers={"who": Answer("declined")})
        self.assertEqual(raised.exception.code, "greet:nobody")


class Granting(unittest.TestCase):
    def denied(self, body: Any, code: str = "unauthorised") -> None:
        with self.assertRaises(ToolError) as raised:
            body()
        self.assertEqual(raised.exception.code, code)

    def test_without_grants_all_is_denied(self) -> None:
        self.denied(lambda: secrets.placeholder("token"))
        self.denied(lambda: secrets.reveal("token"))
        self.denied(lambda: secrets.store("token", b"x"))
        self.denied(lambda: Bucket("visits"))
        self.denied(lambda: http.get("https://a.example/b?key=hidden"))
        self.denied(lambda: tools.call("text.upper", "a"), "not_found")
        log.info("goes nowhere", row=7)
        progress.report(1, 2, "goes nowhere")

    def test_with_grants(self) -> None:
        grants = Grants(
            secrets={"token": b"s3cret"},
            tools={"text.upper": lambda text: text.upper()},
            buckets={"visits": {}},
        )
        with grants:
            self.assertEqual(secrets.placeholder("token"), "placeholder:token")
            secrets.store("token", b"new")
            self.assertEqual(secrets.reveal("token"), b"new")
            self.assertEqual(tools.call("text.upper", "a"), "A")
            bucket = Bucket("visits")
            self.assertEqual([bucket.increment("a"), bucket.increment("a", 2)], [1, 3])
            bucket.set_json("b", [1])
            self.assertEqual(bucket.get_json("b"), [1])
            self.assertEqual(sorted(bucket.keys()), ["a", "b"])
            bucket.delete("a")
            self.assertFalse(bucket.exists("a"))
            self.assertIsNone(bucket.get("a"))
        self.denied(lambda: Bucket("visits"))


class Requests(unittest.TestCase):
    def test_a_server_answers(self) -> None:
        def server(request: HttpRequest) -> Response:
            self.assertEqual((request.method, request.body), ("POST", b"x"))
            return Response(503, [("Retry-After", "2")], b"busy")

        with Grants(http=server):
            response = http.request("post", "https://a.example/", {"a": "b"}, "x")
        self.assertEqual((response.status, response.text()), (503, "busy"))
        with self.assertRaises(ToolError) as raised:
            response.success()
        self.assertEqual(raised.exception.retry_after_ms, 2000)

    def test_a_body_has_a_limit(self) -> None:
        with Grants(http=lambda request: Response(200, [], b"12345")):
            self.assertEqual(http.get("https://a.example", max_bytes=5).status, 200)
            with self.assertRaises(ToolError) as raised:
                http.get("https://a.example/?key=hidden", max_bytes=4)
        self.assertEqual(raised.exception.code, "http:body_too_large")
        self.assertNotIn("hidden", str(raised.exception))

    def test_a_url_falls_into_scheme_authority_and_path(self) -> None:
        for url, parts in {
            "https://a.example": ("https", "a.example", "/"),
            "HTTP://A.example:8080/b/c?d=e#f": ("http", "A.example:8080", "/b/c?d=e"),
            "https://a.example?q=1": ("https", "a.example", "/?q=1"),
            "https://[::1]:1/x#y?z": ("https", "[::1]:1", "/x"),
        }.items():
            self.assertEqual(toolward_guest._split_url(url), parts)

    def test_what_is_no_url_of_the_web_is_refused(self) -> None:
        for url in (
            "",
            "a.example/b",
            "ftp://a.example/",
            "https://",
            "https:///path",
            "https://user:word@a.example/",
            "https://a.example/b c",
            "https://a.example/\r\nHost: b",
            "https://a.example\\@b.example/",
            "https://a.example/" + "x" * 8192,
        ):
            with self.assertRaises(ToolError) as raised:
                http.get(url)
            self.assertEqual(raised.exception.code, "input_invalid", url)


if __name__ == "__main__":
    unittest.main()
