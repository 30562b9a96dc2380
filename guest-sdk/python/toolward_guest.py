"""What the author of a Toolward driver in Python uses.

A driver carries out one or more tool contracts as a WebAssembly component of a
`toolward:driver@0.1.0` world. This module turns that world into plain Python:
input and output are JSON values, errors are exceptions, and one decorator
exports a function as a tool. It grants nothing; the host does.

    from toolward_guest import Call, ToolError, tool

    @tool("text.count")
    def count(call: Call) -> dict[str, int]:
        words = call.input["text"].split()
        if not words:
            raise ToolError("text:empty", "there is nothing to count")
        return {"words": len(words)}

The module can be imported outside a component too, so that a driver's own tests
run under plain `python3 -m unittest`: see `invoke` and `Grants`.

for                                             see
what a call carries                             Call
errors, codes, retries                          ToolError
text, images, links beside the JSON             Output, Block
asking the person behind the caller             Questions, Resume, Answer
progress, log records                           progress, log
secrets, other tools (both need a grant)        secrets, tools
key-value buckets (a grant, driver-keyvalue)    Bucket
HTTP requests (a grant, driver-http)            http
files (a grant)                                 open(), below the contract's paths
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# A component has the modules of its world and no others; a test has none.
_results = _module("componentize_py_types")
_exports = _module("wit_world.exports")
_wit = _module("wit_world.imports.toolward_types")
_wit_log = _module("wit_world.imports.log")
_wit_progress = _module("wit_world.imports.progress")
_wit_secrets = _module("wit_world.imports.secrets")
_wit_tools = _module("wit_world.imports.tools")
_wit_store = _module("wit_world.imports.store")
_wit_atomics = _module("wit_world.imports.atomics")
_wit_outgoing = _module("wit_world.imports.outgoing_handler")
_wit_streams = _module("wit_world.imports.streams")
_wit_http = _module("wit_world.imports.types")
if _exports is not None and _wit is None:
    raise ImportError(
        "build with --import-interface-name toolward:driver/types@0.1.0=toolward_types"
    )
_Err: Any = Exception if _results is None else _results.Err

__all__ = [
    "Answer",
    "Block",
    "Bucket",
    "Call",
    "Grants",
    "Handler",
    "HttpRequest",
    "Output",
    "Questions",
    "Response",
    "Resume",
    "ToolError",
    "http",
    "invoke",
    "log",
    "progress",
    "secrets",
    "tool",
    "tools",
]

# Longest message of an exception that nobody caught; it may hold a whole input.
_MAX_MESSAGE = 1024

_MAX_U64 = (1 << 64) - 1


class ToolError(Exception):
    """A failed call.

    `code` is one of AIP-14's (`input_invalid`, `not_found`, `rate_limited`,
    `upstream_error`, ...) or the tool's own, as `domain:code`. The host marks it
    as the driver's, so it can't pass for one of the host.

    `retryable` says that the same call may succeed later, `retry_after_ms` that it
    may not do so before; the contract's `retry` decides whether it is made again.
    `cause` is what lies behind the error, as JSON.
    """

    def __init__(
        self,
        code: str,
        message: str,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        cause: Any = None,
    ) -> None:
        super().__init__(code, message)
        self.code = _text(code, "the code")
        self.message = _text(message, "the message")
        self.retryable = bool(retryable) or retry_after_ms is not None
        self.retry_after_ms = _wait(retry_after_ms)
        self.cause = cause

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came back for one question: `accepted`, `declined` (the person said no)
    or `cancelled` (the person went away). `value` is the answer, valid against
    the question's schema, or None."""

    status: str
    value: Any = None

    @property
    def accepted(self) -> bool:
        """Whether there is an answer."""
        return self.status == "accepted"


@dataclasses.dataclass(frozen=True)
class Resume:
    """The answers to the questions of the call before, and its state."""

    state_bytes: bytes
    answers: Mapping[str, Answer]

    @property
    def state(self) -> Any:
        """The JSON value given with the questions; None where none was given."""
        return json.loads(self.state_bytes) if self.state_bytes else None

    def answer(self, key: str) -> Answer:
        """The answer to the question with this key."""
        if key not in self.answers:
            raise ToolError("internal", f"no question with the key {key} was asked")
        return self.answers[key]


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of one tool. The instance that runs it serves this call only, so
    globals start fresh each time."""

    input: Any
    """Valid against the contract's `inputs`. Defaults of the schema are not put in."""
    context: Any
    """Set by operator or embedder, valid against the contract's `contextSchema`;
    an empty object where there is none."""
    id: str
    """UUIDv7, the same over retries and questions."""
    tool: str
    """The id of the contract that is called."""
    tool_version: str
    """The version of that contract (semver)."""
    attempt: int
    """From 1. Rises with retries, not with questions."""
    remaining_ms: int
    """Time to the deadline, as measured when this call started."""
    idempotency_key: str
    """The same for all attempts: send it to upstreams that can tell a repeated
    request by it."""
    resume: Resume | None = None
    """The answers, where this call follows questions that the driver asked."""


@dataclasses.dataclass(frozen=True)
class Block:
    """One content block: what the model or the person reads, beside the JSON.

    Made by `text`, `image`, `audio`, `link`, `embedded_text` and `embedded_bytes`.
    `audience` names `user`, `assistant` or both; empty means everybody. `priority`
    goes from 0.0 (least important) to 1.0 (most).
    """

    kind: str
    data: str | bytes = ""
    uri: str = ""
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    audience: tuple[str, ...] = ()
    priority: float | None = None

    def __post_init__(self) -> None:
        for name in ("kind", "uri", "name", "title", "description", "mime_type"):
            value = getattr(self, name)
            if value is not None:
                _text(value, f"the block's {name}")
        if self.kind in ("image", "audio"):
            _text(self.mime_type, "the block's mime_type")
            _bytes(self.data, "the block's data")
        elif self.kind == "text":
            _text(self.data, "the block's text")
        elif not isinstance(self.data, str):
            _bytes(self.data, "the block's data")
        if self.size is not None:
            _u64(self.size, "the block's size")
        if self.priority is not None:
            float(self.priority)
        roles = (self.audience,) if isinstance(self.audience, str) else tuple(self.audience)
        if not set(roles) <= {"user", "assistant"}:
            raise ValueError(f"the block's audience is {roles}, not of user and assistant")
        object.__setattr__(self, "audience", roles)

    @classmethod
    def text(cls, text: str, **annotations: Any) -> Block:
        """Plain text."""
        return cls("text", text, **annotations)

    @classmethod
    def image(cls, mime_type: str, data: bytes, **annotations: Any) -> Block:
        """An image of this media type, as the file's bytes."""
        return cls("image", data, mime_type=mime_type, **annotations)

    @classmethod
    def audio(cls, mime_type: str, data: bytes, **annotations: Any) -> Block:
        """A recording of this media type, as the file's bytes."""
        return cls("audio", data, mime_type=mime_type, **annotations)

    @classmethod
    def link(cls, uri: str, name: str, **more: Any) -> Block:
        """A resource that is only referred to; `title`, `description`,
        `mime_type` and `size` may be given."""
        return cls("link", uri=uri, name=name, **more)

    @classmethod
    def embedded_text(cls, uri: str, text: str, **more: Any) -> Block:
        """A text resource, carried in the result itself."""
        return cls("embedded", text, uri=uri, **more)

    @classmethod
    def embedded_bytes(cls, uri: str, data: bytes, **more: Any) -> Block:
        """A binary resource, carried in the result itself."""
        return cls("embedded", data, uri=uri, **more)


@dataclasses.dataclass(frozen=True)
class Output:
    """A value, and blocks beside it. Without blocks the host shows the value's
    JSON as text."""

    value: Any
    content: list[Block] = dataclasses.field(default_factory=list)


class Questions:
    """Questions to whoever stands behind the caller. Returned in place of a value;
    the driver is then called anew, with the answers in `call.resume`.

        if call.resume is None:
            return Questions().form("who", "Whom shall I greet?", schema)
        answer = call.resume.answer("who")

    Each kind is a capability that the contract declares (`requires.user`) and the
    operator grants. Keys are unique.
    """

    def __init__(self) -> None:
        self.questions: list[tuple[str, str, Any]] = []
        self.state_bytes = b""

    def form(self, key: str, message: str, schema: Mapping[str, Any]) -> Questions:
        """Asks the person to fill in a form: a flat JSON Schema object whose
        properties are strings, numbers, booleans or enumerations."""
        return self._ask(
            key, "form", (_text(message, "the message"), _dumps(schema, "the form's schema"))
        )

    def sample(self, key: str, parameters: Mapping[str, Any]) -> Questions:
        """Asks the caller's model: parameters of MCP `sampling/createMessage`."""
        return self._ask(key, "sample", _dumps(parameters, "the parameters"))

    def roots(self, key: str) -> Questions:
        """Asks for the caller's workspace roots."""
        return self._ask(key, "roots", None)

    def state(self, state: Any) -> Questions:
        """What `Resume.state` gives back, at most 64 KiB of JSON. The caller can
        read it, and can't change it."""
        self.state_bytes = _dumps(state, "the state").encode()
        return self

    @property
    def keys(self) -> list[str]:
        """The questions' keys, in the order asked."""
        return [key for key, _, _ in self.questions]

    def _ask(self, key: str, kind: str, what: Any) -> Questions:
        self.questions.append((_text(key, "the question's key"), kind, what))
        return self


ToolFunction = Callable[[Call], Any]
_TOOLS: dict[str, ToolFunction] = {}


def tool(id: str) -> Callable[[ToolFunction], ToolFunction]:
    """Exports a function as the tool with this contract id.

    It takes a `Call` and returns a JSON value, an `Output` or `Questions`; dataclasses
    become objects. It fails by `ToolError`; any other exception ends the call with
    the code `internal`.
    """

    def register(function: ToolFunction) -> ToolFunction:
        if id in _TOOLS:
            raise ValueError(f"the tool {id} is defined twice")
        _TOOLS[id] = function
        # The toolchain looks for the class in the module that it is told to build.
        module = sys.modules.get(function.__module__)
        if module is not None and not hasattr(module, "Handler"):
            module.Handler = Handler  # type: ignore[attr-defined]
        return function

    return register


class log:
    """Log records to the host: structured, capped per call (1000 records by
    default), redacted. `print` is captured too, for the operator only."""

    @staticmethod
    def write(level: str, message: str, /, **fields: Any) -> None:
        """A record of the level `trace`, `debug`, `info`, `warn` or `error`.
        Fields without a JSON form are shown as Python shows them."""
        if _wit is not None:
            _wit_log.write(_wit_log.Level[level.upper()], _plain(message), _shown_fields(fields))

    @staticmethod
    def debug(message: str, /, **fields: Any) -> None:
        """For finding faults."""
        log.write("debug", message, **fields)

    @staticmethod
    def info(message: str, /, **fields: Any) -> None:
        """For knowing what went on."""
        log.write("info", message, **fields)

    @staticmethod
    def warn(message: str, /, **fields: Any) -> None:
        """Something is odd, the call goes on."""
        log.write("warn", message, **fields)

    @staticmethod
    def error(message: str, /, **fields: Any) -> None:
        """Something failed."""
        log.write("error", message, **fields)


class progress:
    """Progress towards the caller. A report never blocks; too many are dropped."""

    @staticmethod
    def report(done: float, total: float | None = None, message: str | None = None) -> None:
        """Reports that `done` of `total` is reached. `done` must rise from report
        to report within one call."""
        if _wit is not None:
            update = _wit_progress.Update(
                float(done),
                None if total is None else float(total),
                None if message is None else _plain(message),
            )
            _wit_progress.report(update)


class secrets:
    """Secrets that the contract names in `requires.secrets` and the operator grants.

    They fail with `unauthorised` where the secret isn't declared or granted,
    `auth_required` where the operator has no value, `upstream_error` where the
    store fails.
    """

    @staticmethod
    def placeholder(slug: str) -> str:
        """Text for an outgoing header, which the host replaces by the secret. It is
        good for this call only, and useless elsewhere."""
        if _wit is None:
            _granted(_current().secrets, slug, f"the secret {slug}")
            return f"placeholder:{slug}"
        return str(secrets._ask(slug, lambda: _wit_secrets.placeholder(_text(slug, "the slug"))))

    @staticmethod
    def reveal(slug: str) -> bytes:
        """The secret itself, which takes a policy line of its own."""
        if _wit is None:
            return bytes(_granted(_current().secrets, slug, f"the secret {slug}"))
        return bytes(secrets._ask(slug, lambda: _wit_secrets.reveal(_text(slug, "the slug"))))

    @staticmethod
    def store(slug: str, value: bytes) -> None:
        """Stores a new value, where the contract declares `mutates: secret:SLUG`."""
        value = _bytes(value, "the secret's value")
        if _wit is None:
            _granted(_current().secrets, slug, f"the secret {slug}")
            _current().secrets[slug] = value
        else:
            secrets._ask(slug, lambda: _wit_secrets.store(_text(slug, "the slug"), value))

    @staticmethod
    def _ask(slug: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except _Err as error:
            code, what = {
                _wit_secrets.SecretError.DENIED: (
                    "unauthorised",
                    f"the secret {slug} is not declared, or not granted for this",
                ),
                _wit_secrets.SecretError.MISSING: (
                    "auth_required",
                    f"the secret {slug} is granted, but has no value",
                ),
            }.get(error.value, ("upstream_error", f"the store of the secret {slug} failed"))
        raise ToolError(code, what)


class tools:
    """Other tools, named in the contract's `requires.tools` and granted. Each call
    goes through the whole pipeline, with what is left of this call's limits."""

    @staticmethod
    def call(id: str, input: Any, timeout_ms: int | None = None) -> Any:
        """Calls a tool and returns its structured output. `timeout_ms` lowers the
        deadline for this call. It fails as the callee does, and with
        `unauthorised` without a grant."""
        id = _text(id, "the tool's id")
        text = _dumps(input, "the input")
        if timeout_ms is not None:
            timeout_ms = _u64(timeout_ms, "the timeout")
        if _wit is None:
            if id not in _current().tools:
                raise ToolError("not_found", "there are no other tools outside a host")
            return _loads(_dumps(_current().tools[id](_loads(text)), "the output"))
        try:
            output = _wit_tools.call(_wit_tools.Request(id, text, timeout_ms))
            return _loads(output.structured)
        except _Err as error:
            failed = error.value
        cause = None if failed.cause is None else _loads(failed.cause)
        raise ToolError(failed.code, failed.message, failed.retryable, failed.retry_after_ms, cause)


class Bucket:
    """A bucket of key-value pairs, which the contract names in `requires.database`
    (reading) or `mutates: database:NAME`. What is written stays for later calls of
    the same publisher and principal. For the worlds `driver-keyvalue` and `driver-all`.

    Its operations fail with `unauthorised` where the bucket is not declared or
    granted, or is written and may only be read; `upstream_error` where the store
    fails.
    """

    def __init__(self, name: str) -> None:
        self.name = _text(name, "the bucket's name")
        self._bucket: Any
        if _wit is None:
            self._bucket = _granted(_current().buckets, name, f"the bucket {name}")
        elif _wit_store is None:
            raise _lacking("key-value buckets", "driver-keyvalue")
        else:
            refused = f"the bucket {name} is not declared, or not granted"
            self._bucket = self._ask(lambda: _wit_store.open(name), refused)

    def get(self, key: str) -> bytes | None:
        """The key's value; None where it has none."""
        key = _text(key, "the key")
        value: bytes | None = self._ask(lambda: self._bucket.get(key))
        return value

    def get_json(self, key: str) -> Any:
        """The key's value, read as JSON; None where it has none."""
        value = self.get(key)
        return None if value is None else _loads(value)

    def set(self, key: str, value: bytes) -> None:
        """Gives the key a value, in place of the one that it may have."""
        key, value = _text(key, "the key"), _bytes(value, "the value")
        if _wit is None:
            self._bucket[key] = value
        else:
            self._ask(lambda: self._bucket.set(key, value))

    def set_json(self, key: str, value: Any) -> None:
        """The same with a value's JSON."""
        self.set(key, _dumps(value, "the value").encode())

    def delete(self, key: str) -> None:
        """Removes the key; one that is missing is no error."""
        key = _text(key, "the key")
        if _wit is None:
            self._bucket.pop(key, None)
        else:
            self._ask(lambda: self._bucket.delete(key))

    def exists(self, key: str) -> bool:
        """Whether the key has a value."""
        key = _text(key, "the key")
        if _wit is None:
            return key in self._bucket
        return bool(self._ask(lambda: self._bucket.exists(key)))

    def increment(self, key: str, by: int = 1) -> int:
        """Adds to the number under the key, from 0 where there is none, and returns
        the sum: one step, whatever other calls do at the same time. The number is
        kept as decimal digits."""
        key, by = _text(key, "the key"), _u64(by, "the number to add")
        if _wit is None:
            self._bucket[key] = str(int(self._bucket.get(key, b"0")) + by).encode()
            return int(self._bucket[key])
        return int(self._ask(lambda: _wit_atomics.increment(self._bucket, key, by)))

    def keys(self) -> Iterator[str]:
        """The keys, in no promised order. Pages are fetched as they are needed."""
        if _wit is None:
            yield from list(self._bucket)
            return
        more, cursor = True, None
        while more:
            page = self._page(cursor)
            yield from page.keys
            more, cursor = page.cursor is not None, page.cursor

    def _page(self, cursor: int | None) -> Any:
        return self._ask(lambda: self._bucket.list_keys(cursor))

    def _ask(self, ask: Callable[[], Any], refused: str | None = None) -> Any:
        if _wit is None:
            return ask()
        try:
            return ask()
        except _Err as error:
            failed = error.value
        if isinstance(failed, _wit_store.Error_Other):
            raise ToolError("upstream_error", f"the bucket {self.name}: {failed.value}")
        default = (
            f"the bucket {self.name} may not be written: declare `mutates: database:{self.name}`"
        )
        raise ToolError("unauthorised", refused or default)


@dataclasses.dataclass(frozen=True)
class HttpRequest:
    """A request, as what stands in for the host in tests sees it."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclasses.dataclass(frozen=True)
class Response:
    """An answer, whatever its status."""

    status: int
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of this name, names being equal in any case."""
        found = (value for key, value in self.headers if key.lower() == name.lower())
        return next(found, None)

    def text(self) -> str:
        """The body as UTF-8."""
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            raise ToolError("upstream_error", f"the response is not UTF-8: {error}") from None

    def json(self) -> Any:
        """The body's JSON."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ToolError("upstream_error", f"the response is not JSON: {error}") from None

    def success(self) -> Response:
        """The response, where its status is one of 200 to 299; else a ToolError with
        the code `upstream_error`, retryable for 429, 502, 503 and 504."""
        if 200 <= self.status < 300:
            return self
        wait = (self.header("retry-after") or "").strip()
        seconds = int(wait) if self.status in (429, 503) and wait.isdecimal() else None
        raise ToolError(
            "upstream_error",
            f"the server answered with status {self.status}",
            retryable=self.status in (429, 502, 503, 504),
            retry_after_ms=None if seconds is None else seconds * 1000,
            cause={"status": self.status, "body": self.body[:512].decode(errors="replace")},
        )


class http:
    """HTTP requests to the hosts that the contract declares, the driver's egress
    list names and the operator grants. The host makes them and follows no redirects.
    For the worlds `driver-http` and `driver-all`."""

    @staticmethod
    def request(
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        body: bytes | str = b"",
        timeout_ms: int | None = None,
        max_bytes: int = 4 << 20,
    ) -> Response:
        """Sends a request and reads the answer.

        `timeout_ms` is the longest wait for the connection, for the first byte of the
        answer, and between two bytes of it. The answer is an error only where none
        came: see `Response.success` for the status. It fails with `input_invalid` for
        a URL or header that is none, `unauthorised` where the host is not declared or
        granted, `rate_limited` at the limit of requests, `http:body_too_large` where
        the body is longer than `max_bytes`, and `upstream_error` for all that can go
        wrong on the way, retryable where the same request may succeed later.
        """
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        data = body.encode() if isinstance(body, str) else _bytes(body, "the body")
        if timeout_ms is not None:
            timeout_ms = _u64(timeout_ms, "the timeout")
        request = HttpRequest(method.upper(), url, pairs, data)
        scheme, authority, path = _split_url(url)
        if _wit is None:
            server = _current().server
            if server is None:
                raise _http_denied(request)
            response = server(request)
        elif _wit_outgoing is None:
            raise _lacking("HTTP", "driver-http")
        else:
            response = _send(request, scheme, authority, path, timeout_ms, max_bytes)
        if len(response.body) > max_bytes:
            shown = _shown(request)
            raise ToolError(
                "http:body_too_large", f"the answer to {shown} is longer than {max_bytes} bytes"
            )
        return response

    @staticmethod
    def get(url: str, **options: Any) -> Response:
        """A `GET` request; the options are those of `request`."""
        return http.request("GET", url, **options)


# --- Tests outside a component ---------------------------------------------------


class Grants:
    """What stands in for the host's grants while a function is tested. Without it,
    as without a host, all is denied. What is written stays in it.

        grants = Grants(secrets={"token": b"s3cret"}, buckets={"visits": {}})
        with grants:
            assert invoke(visit, {"page": "a"}).value == 1
    """

    def __init__(
        self,
        secrets: Mapping[str, bytes] | None = None,
        tools: Mapping[str, Callable[[Any], Any]] | None = None,
        buckets: Mapping[str, dict[str, bytes]] | None = None,
        http: Callable[[HttpRequest], Response] | None = None,
    ) -> None:
        self.secrets = dict(secrets or {})
        self.tools = dict(tools or {})
        self.buckets = dict(buckets or {})
        self.server: Callable[[HttpRequest], Response] | None = http

    def __enter__(self) -> Grants:
        _GRANTS.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _GRANTS.pop()


_GRANTS: list[Grants] = [Grants()]


def invoke(
    function: ToolFunction,
    input: Any,
    context: Any = None,
    answers: Mapping[str, Answer] | None = None,
    attempt: int = 1,
) -> Output:
    """Calls a tool's function without a host; values go through JSON as they do in a
    component. What it leaves out is the host: schemas, limits, policy. Questions get
    their answers by key, in a call of their own:

        invoke(greet, {}, answers={"who": Answer("accepted", {"name": "Ada"})})
    """
    call = Call(
        input=_loads(_dumps(input, "the input")),
        context=_loads(_dumps({} if context is None else context, "the context")),
        id="00000000-0000-7000-8000-000000000000",
        tool="test",
        tool_version="0.0.0",
        attempt=attempt,
        remaining_ms=30_000,
        idempotency_key="test",
    )
    result = function(call)
    for _ in range(3):  # as often as a host lets a call ask
        if not isinstance(result, Questions):
            break
        lacking = [key for key in result.keys if key not in (answers or {})]
        if lacking or answers is None:
            what = ", ".join(lacking)
            raise ToolError("input_unavailable", f"nobody is here to answer {what}")
        given = {key: answers[key] for key in result.keys}
        result = function(dataclasses.replace(call, resume=Resume(result.state_bytes, given)))
    if isinstance(result, Questions):
        raise ToolError("toolward:limit_exceeded", "the driver asks too often")
    output = result if isinstance(result, Output) else Output(result)
    return Output(_loads(_dumps(output.value, "the output")), output.content)


def _current() -> Grants:
    return _GRANTS[-1]


def _granted(values: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in values:
        raise ToolError("unauthorised", f"{what} is not declared, or not granted")
    return values[name]


# --- The component's side --------------------------------------------------------


class Handler(_exports.Handler if _exports is not None else object):  # type: ignore[misc]
    """The class that the component exports."""

    def execute(self, call: Any) -> Any:
        """Runs one call."""
        try:
            return _outcome(_dispatch(call))
        except ToolError as error:
            failed = error
        except BaseException as error:  # anything that leaves here is a trap without text
            failed = _uncaught(error)
        finally:
            _flush()
        try:
            raw = _wit_error(failed)
        except Exception as error:  # what the author has set since can be of any type
            raw = _wit_error(_uncaught(error))
        raise _Err(raw)


def _dispatch(call: Any) -> Any:
    function = _TOOLS.get(call.tool)
    if function is None:
        known = ", ".join(_TOOLS) or "nothing"
        raise ToolError("not_found", f"this driver implements {known}, not {call.tool}")
    return function(
        Call(
            input=_loads(call.input),
            context=_loads(call.context),
            id=call.id,
            tool=call.tool,
            tool_version=call.tool_version,
            attempt=call.attempt,
            remaining_ms=call.remaining_ms,
            idempotency_key=call.idempotency_key,
            resume=None if call.resume is None else _resume(call.resume),
        )
    )


def _resume(raw: Any) -> Resume:
    answers = {}
    for answer in raw.answers:
        if isinstance(answer.reply, _wit.Reply_Accepted):
            answers[answer.key] = Answer("accepted", _loads(answer.reply.value))
        elif isinstance(answer.reply, _wit.Reply_Declined):
            answers[answer.key] = Answer("declined")
        else:
            answers[answer.key] = Answer("cancelled")
    return Resume(bytes(raw.state), answers)


def _outcome(result: Any) -> Any:
    if isinstance(result, Questions):
        if not result.questions:
            raise ToolError("internal", "the driver asks, but asks nothing")
        questions = [_wit.Question(key, _ask(kind, what)) for key, kind, what in result.questions]
        return _wit.Outcome_NeedsInput(_wit.InputRequest(questions, result.state_bytes))
    output = result if isinstance(result, Output) else Output(result)
    structured = _dumps(output.value, "the output")
    return _wit.Outcome_Done(_wit.ToolOutput(structured, [_block(b) for b in output.content]))


def _ask(kind: str, what: Any) -> Any:
    if kind == "form":
        return _wit.Ask_Form(_wit.Form(what[0], what[1]))
    return _wit.Ask_Sample(what) if kind == "sample" else _wit.Ask_Roots()


def _block(block: Block) -> Any:
    def plain(text: str | None) -> str | None:
        return None if text is None else _plain(text)

    mime_type, data = plain(block.mime_type), block.data
    data = _plain(data) if isinstance(data, str) else bytes(data)
    if block.kind == "text":
        content = _wit.Content_Text(data)
    elif block.kind == "image":
        content = _wit.Content_Image(_wit.Media(data, mime_type))
    elif block.kind == "audio":
        content = _wit.Content_Audio(_wit.Media(data, mime_type))
    elif block.kind == "link":
        title, description = plain(block.title), plain(block.description)
        content = _wit.Content_ResourceLink(
            _wit.Link(
                _plain(block.uri), _plain(block.name), title, description, mime_type, block.size
            )
        )
    else:
        body = _wit.ResourceBody_Text if isinstance(data, str) else _wit.ResourceBody_Blob
        content = _wit.Content_Embedded(
            _wit.EmbeddedResource(_plain(block.uri), mime_type, body(data))
        )
    if not block.audience and block.priority is None:
        return _wit.Block(content, None)
    roles = [_wit.Role[role.upper()] for role in block.audience]
    priority = None if block.priority is None else float(block.priority)
    return _wit.Block(content, _wit.Annotations(roles, priority))


def _uncaught(error: BaseException) -> ToolError:
    try:
        where = error.__traceback__
        while where is not None and where.tb_frame.f_code.co_filename == __file__:
            where = where.tb_next
        traceback.print_exception(type(error), error, where or error.__traceback__)
        message = f"{type(error).__name__}: {error}".removesuffix(": ")
    except BaseException:  # no memory or stack left, or an exception that can't be shown
        message = type(error).__name__
    # The frames hold what the function had, which may be all the memory there is.
    traceback.clear_frames(error.__traceback__)
    error.__traceback__ = None
    if len(message) > _MAX_MESSAGE:
        message = message[:_MAX_MESSAGE] + "…"
    return ToolError("internal", message)


def _wit_error(error: ToolError) -> Any:
    try:
        cause = None if error.cause is None else _dumps(error.cause, "the cause")
    except Exception:
        cause = None
    return _wit.ToolError(
        _plain(error.code),
        _plain(error.message),
        bool(error.retryable),
        _wait(error.retry_after_ms),
        cause,
    )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def _dumps(value: Any, what: str) -> str:
    """Strict JSON in UTF-8: no NaN, no lone surrogates."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain_object)
        text.encode()
        return text
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"{what} has no JSON form: {error}"
    raise ToolError("internal", problem)


def _plain_object(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _loads(text: str | bytes) -> Any:
    return json.loads(text)


# A value of another type than the world's ends the call with a trap, not with an
# exception; so what the author gives is checked before it crosses.


def _plain(text: Any) -> str:
    """Text that UTF-8 can hold: lone surrogates are replaced."""
    return str(text).encode(errors="replace").decode()


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {type(value).__name__}, not str")
    return _plain(value)


def _bytes(value: Any, what: str) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{what} is {type(value).__name__}, not bytes")
    return bytes(value)


def _u64(value: Any, what: str) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{what} is {type(value).__name__}, not int")
    if not 0 <= value <= _MAX_U64:
        raise ValueError(f"{what} is {value}, not of 64 bits")
    return int(value)


def _wait(milliseconds: float | None) -> int | None:
    """A wait of 64 bits, whatever the author's arithmetic gave."""
    if milliseconds is None:
        return None
    return round(min(max(0, milliseconds), _MAX_U64))


def _represented(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"{type(value).__name__} that can't be shown"


def _shown_fields(fields: Mapping[str, Any]) -> str | None:
    if not fields:
        return None
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, default=_represented)
    except Exception:  # the author's own classes may raise any
        text = json.dumps({name: _represented(value) for name, value in fields.items()})
    return _plain(text)


def _lacking(what: str, world: str) -> ToolError:
    return ToolError("internal", f"this component has no {what}: build it for the world {world}")


# --- HTTP ------------------------------------------------------------------------


def _split_url(url: str) -> tuple[str, str, str]:
    """The parts that a request is made of. What a host name means, and whether it
    may be reached, is the host's to say."""
    scheme, found, rest = url.partition("://")
    scheme = scheme.lower()
    rest = rest.partition("#")[0]
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:]
    if not found:
        problem = "has no `https://` at its start"
    elif scheme not in ("http", "https"):
        problem = "is neither https nor http"
    elif len(url) > 8192:
        problem = "is too long"
    elif any(c <= " " or c in "\\\x7f" for c in url):
        problem = "holds a space, a backslash or a control character"
    elif not authority:
        problem = "names no host"
    elif "@" in authority:
        problem = "holds a user name or a password"
    else:
        return scheme, authority, path if path.startswith("/") else "/" + path
    raise ToolError("input_invalid", f"the URL {url[:200]} {problem}")


def _shown(request: HttpRequest) -> str:
    """Without its query, which may hold what nobody else should read."""
    return f"{request.method} {request.url.partition('#')[0].partition('?')[0][:200]}"


def _send(
    request: HttpRequest,
    scheme: str,
    authority: str,
    path: str,
    timeout_ms: int | None,
    max_bytes: int,
) -> Response:
    outgoing = _wit_http.OutgoingRequest(_fields(request))
    steps: dict[str, Callable[[], Any]] = {
        "method": lambda: outgoing.set_method(_method(request.method)),
        "scheme": lambda: outgoing.set_scheme(
            _wit_http.Scheme_Https() if scheme == "https" else _wit_http.Scheme_Http()
        ),
        "host": lambda: outgoing.set_authority(authority),
        "path": lambda: outgoing.set_path_with_query(path),
    }
    for part, put in steps.items():
        try:
            put()
        except _Err:
            raise ToolError(
                "input_invalid", f"the host takes no such {part}: {_shown(request)}"
            ) from None
    body = outgoing.body()
    try:
        pending = _wit_outgoing.handle(outgoing, _options(timeout_ms))
    except _Err as error:
        raise _http_failed(request, error.value) from None
    unsent = _write(body, request.body)
    with pending.subscribe() as pollable:
        pollable.block()
    answered = pending.get()
    if not isinstance(answered, _results.Ok):
        raise ToolError("internal", "the host gave no answer")
    # Where both failed, the answer's reason is the better one.
    if not isinstance(answered.value, _results.Ok):
        raise _http_failed(request, answered.value.value)
    if unsent is not None:
        raise _http_failed(request, unsent)
    return _read(request, answered.value.value, max_bytes)


def _method(name: str) -> Any:
    if name in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
        return getattr(_wit_http, f"Method_{name.capitalize()}")()
    return _wit_http.Method_Other(name)


def _fields(request: HttpRequest) -> Any:
    fields = _wit_http.Fields()
    headers = [(name, value.encode()) for name, value in request.headers]
    if request.body:
        headers.append(("content-length", str(len(request.body)).encode()))
    for name, value in headers:
        try:
            fields.append(name, value)
        except _Err as error:
            if isinstance(error.value, _wit_http.HeaderError_Forbidden):
                problem = "unauthorised", f"the host takes no header {name} from a driver"
            else:
                what = f"the header {name} has a name or value that HTTP does not allow"
                problem = "input_invalid", what
            raise ToolError(*problem) from None
    return fields


def _options(timeout_ms: int | None) -> Any:
    if timeout_ms is None:
        return None
    options = _wit_http.RequestOptions()
    for put in (
        options.set_connect_timeout,
        options.set_first_byte_timeout,
        options.set_between_bytes_timeout,
    ):
        try:
            put(min(timeout_ms * 1_000_000, _MAX_U64))
        except _Err:
            pass  # not each host knows each of them; its own limits hold then
    return options


def _write(body: Any, data: bytes) -> Any:
    """Writes the body; returns the reason where that fails."""
    try:
        with body.write() as stream:
            while data:
                with stream.subscribe() as pollable:
                    pollable.block()
                room = stream.check_write()
                stream.write(data[:room])
                data = data[room:]
            stream.blocking_flush()
        _wit_http.OutgoingBody.finish(body, None)
    except _Err as error:
        return _stream_failed(error.value)
    return None


def _read(request: HttpRequest, response: Any, max_bytes: int) -> Response:
    headers = [(name, value.decode("latin-1")) for name, value in response.headers().entries()]
    data = bytearray()
    with response.consume() as body, body.stream() as stream:
        # One byte more than is wanted shows that there is more.
        while len(data) <= max_bytes:
            try:
                data += stream.blocking_read(min(1 << 16, max_bytes + 1 - len(data)))
            except _Err as error:
                if isinstance(error.value, _wit_streams.StreamError_Closed):
                    break
                raise _http_failed(request, _stream_failed(error.value)) from None
    return Response(response.status(), headers, bytes(data))


def _stream_failed(error: Any) -> Any:
    """The HTTP error behind a stream's, or the one that was given."""
    if isinstance(error, _wit_streams.StreamError_LastOperationFailed):
        code = _wit_http.http_error_code(error.value)
        return code or _wit_http.ErrorCode_InternalError(error.value.to_debug_string())
    if isinstance(error, _wit_streams.StreamError_Closed):
        return _wit_http.ErrorCode_ConnectionTerminated()
    return error


def _http_denied(request: HttpRequest, cause: Any = None) -> ToolError:
    return ToolError(
        "unauthorised",
        f"{_shown(request)} is not granted: the contract, the driver's egress list and the"
        " operator's policy all have to allow it",
        cause=cause,
    )


# The connection's own errors in the caller's words, and whether they may pass.
_UPSTREAM = {
    "DnsTimeout": ("no answer in time", True),
    "ConnectionTimeout": ("no answer in time", True),
    "ConnectionReadTimeout": ("no answer in time", True),
    "ConnectionWriteTimeout": ("no answer in time", True),
    "HttpResponseTimeout": ("no answer in time", True),
    "DnsError": ("the host's name has no address", True),
    "DestinationNotFound": ("the host's name has no address", True),
    "DestinationUnavailable": ("no connection, or it broke off", True),
    "DestinationIpUnroutable": ("no connection, or it broke off", True),
    "ConnectionRefused": ("no connection, or it broke off", True),
    "ConnectionTerminated": ("no connection, or it broke off", True),
    "HttpResponseIncomplete": ("no connection, or it broke off", True),
    "TlsProtocolError": ("no secure connection", False),
    "TlsCertificateError": ("no secure connection", False),
    "TlsAlertReceived": ("no secure connection", False),
}


def _http_failed(request: HttpRequest, code: Any) -> ToolError:
    name = type(code).__name__.removeprefix("ErrorCode_")
    shown = _shown(request)
    if name in ("HttpRequestDenied", "DestinationIpProhibited"):
        return _http_denied(request, name)
    if name == "ConnectionLimitReached":
        return ToolError("rate_limited", f"{shown}: too many requests at once", True, cause=name)
    if name == "HttpRequestBodySize":
        what = f"the body of {shown} is longer than the host sends"
        return ToolError("http:body_too_large", what, cause=name)
    if name == "HttpResponseBodySize":
        what = f"the answer to {shown} is longer than the host takes"
        return ToolError("http:body_too_large", what, cause=name)
    text = code.value if name == "InternalError" and code.value else "the request failed"
    what, retryable = _UPSTREAM.get(name, (text, False))
    return ToolError("upstream_error", f"{shown}: {what}", retryable, cause=name)
