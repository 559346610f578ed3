"""The HTTP server of the live page: JSON requests, and answers streamed as lines of JSON."""

import hmac
import json
import logging
import re
import resource
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlencode

import msgspec
from waitress import create_server, wasyncore
from waitress.channel import HTTPChannel

from broca.errors import BadInput, BrocaError
from broca.explorer.explorer import Explorer
from broca.explorer.generator import Stream

LOCAL = ("127.0.0.1", "localhost", "::1")

LIMITS = {
    "threads": 48,
    "connection_limit": min(128, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2),
    "channel_timeout": 15,
    "cleanup_interval": 5,
    "max_request_header_size": 2**14,
    "max_request_body_size": 2**18,
}
"""Limits of the server: requests at once, connections, seconds for a request to arrive, the seconds
between two looks at them, and bytes. More connections wait until others are closed."""

_LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Environment = dict[str, Any]
"""A request of WSGI."""


def require_token(host: str, token: str, public: bool) -> None:
    """Refuses an address that other machines reach without a token, unless it is public.

    Raises:
        BadInput: The address is open and has no token, or has one and is public.
    """
    if public and token:
        raise BadInput("`public` admits everyone without the `token`: leave one of them out")
    if host not in LOCAL and not token and not public:
        raise BadInput(f"`host` {host} is open to other machines: it needs a `token`, or `public`")


class _Refusal(Exception):
    """A request that gets no answer but a status and a line."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection: a request has to arrive within the time limit, however many parts it has."""

    last_activity: float

    def handle_read(self) -> None:
        before = self.last_activity
        super().handle_read()
        if self.request is not None:  # it is not complete
            self.last_activity = before


class Server:
    """Serves an explorer until it is closed.

    Args:
        explorer: Answers the requests.
        host: The address; other machines reach the page only if it is not local.
        port: The port; 0 chooses a free one.
        token: Token that every request must contain; empty for none.
        public: Whether an open address needs no token; a Space on Hugging Face's hub may then show
            the page in its frame.

    Raises:
        BadInput: The address is taken or cannot be used, or an open address has no token.
    """

    def __init__(
        self, explorer: Explorer, *, host: str, port: int, token: str, public: bool
    ) -> None:
        require_token(host, token, public)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            opened = socket.create_server((host, port), family=family)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInput(
                f"`host` {host}, `port` {port} cannot be served ({reason}): choose another `port`"
            ) from error
        self.host, self.port = host, opened.getsockname()[1]
        self._explorer, self._token = explorer, token
        ancestors = "https://huggingface.co" if public else "'none'"
        self._headers = {**_HEADERS, "Content-Security-Policy": f"{_POLICY} {ancestors}"}
        logging.getLogger("waitress").addHandler(logging.NullHandler())  # not stderr
        self._sockets: dict[int, Any] = {}
        # a proxy, such as a Space's, reports the public name of the page
        self._server = create_server(
            self._serve, map=self._sockets, sockets=[opened], send_bytes=1, ident=None,
            clear_untrusted_proxy_headers=False, **LIMITS,
        )  # fmt: skip
        self._server.channel_class = _Channel
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page, with the token if there is one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = f"?{urlencode({'token': self._token})}" if self._token else ""
        return f"http://{host}:{self.port}/{query}"

    def close(self) -> None:
        """Stops the server, unless it has ended."""
        if self._thread.is_alive():
            self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._sockets))
            self._thread.join(timeout=10)
        self._server.task_dispatcher.shutdown(timeout=0)

    def wait(self) -> None:
        """Waits until the server ends, such as by Ctrl+C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def _serve(self, request: Environment, start: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request, or says in one line why not."""
        status = HTTPStatus.OK
        try:
            self._admit(request)
            kind, content = self._answer(request)
        except Exception as error:  # noqa: BLE001  # the page says it; the server goes on
            status, text = HTTPStatus.BAD_REQUEST, " ".join(str(error).split())
            if isinstance(error, _Refusal):
                status = error.status
            elif not isinstance(error, BrocaError):
                status = HTTPStatus.INTERNAL_SERVER_ERROR
                text = f"{type(error).__name__}: this could not be answered"
            kind, content = _json({"error": text})
        start(f"{status.value} {status.phrase}", [("Content-Type", kind), *self._headers.items()])
        return [content] if isinstance(content, bytes) else content

    def _admit(self, request: Environment) -> None:
        """Refuses requests that do not come from the page itself, or lack the token.

        On a local address only local names are served, which prevents DNS rebinding.
        """
        host, origin = request.get("HTTP_HOST", ""), request.get("HTTP_ORIGIN")
        names = {host, request.get("HTTP_X_FORWARDED_HOST", "")} - {""}
        query = parse_qs(request["QUERY_STRING"]).get("token", [""])[0]
        token = request.get("HTTP_X_TOKEN") or query
        kind = request.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
        if not (
            (self.host not in LOCAL or _LOCAL_HOST.fullmatch(host))
            and (origin is None or origin.partition("://")[2] in names)
            and (not self._token or hmac.compare_digest(token.encode(), self._token.encode()))
            and (request["REQUEST_METHOD"] != "POST" or kind == "application/json")
        ):
            raise _Refusal(
                HTTPStatus.FORBIDDEN,
                "this page answers only itself: open the address that broca printed",
            )

    def _answer(self, request: Environment) -> tuple[str, Any]:
        """Returns the type and the content of an answer."""
        explorer, path = self._explorer, request["PATH_INFO"]
        if request["REQUEST_METHOD"] == "POST":
            question = _question(request["wsgi.input"].read())
            off, scale = question.off, question.scale
            if path == "/api/answer":
                stream = explorer.answer(
                    question.prompt, off, scale=scale, longest=question.longest, chat=question.chat,
                )  # fmt: skip
                return "application/x-ndjson; charset=utf-8", _lines(stream)
            answers: dict[str, Callable[[], Any]] = {
                "/api/score": lambda: explorer.score(question.task, off, scale=scale),
                "/api/slopes": lambda: explorer.slopes(question.task, off, scale=scale),
                "/api/random": lambda: explorer.random_scores(question.task, off, scale=scale),
                "/api/text": lambda: explorer.text(off, scale=scale),
                "/api/example": lambda: explorer.example(question.task),
                "/api/add": lambda: explorer.measurer.add(question.task, question.text),
                "/api/verify": lambda: explorer.verify(question.task, off, scale=scale),
                "/api/set": lambda: explorer.named(question.text),
            }
        else:
            answers = {
                "/api/model": explorer.describe,
                "/api/status": explorer.status,
                "/api/tasks": explorer.measurer.tasks,
            }
            if path == "/":
                return _html(explorer.page())
            if made := re.fullmatch(r"/verification/([0-9]{1,6})", path):
                try:
                    return _html(explorer.verification_page(int(made[1])))
                except BadInput as error:
                    raise _Refusal(HTTPStatus.NOT_FOUND, str(error)) from error
        if path not in answers:
            raise _Refusal(HTTPStatus.NOT_FOUND, "there is no such page or question")
        return _json(answers[path]())


class Question(msgspec.Struct):
    """The content of a request."""

    task: str = ""
    off: list[str] = []
    scale: float = 0.0
    prompt: str = ""
    longest: int = 64
    chat: bool = True
    text: str = ""


def _question(content: bytes) -> Question:
    try:
        return msgspec.json.decode(content, type=Question)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the request is not a JSON object with these fields ({error})") from error


def _lines(stream: Stream) -> Iterator[bytes]:
    try:
        for event in stream:
            yield json.dumps(event).encode() + b"\n"
    finally:  # its end, or the tab was closed
        stream.cancelled = True


def _json(data: Any) -> tuple[str, bytes]:
    return "application/json; charset=utf-8", json.dumps(data).encode()


def _html(page: str) -> tuple[str, bytes]:
    return "text/html; charset=utf-8", page.encode(errors="replace")
