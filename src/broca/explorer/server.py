"""The HTTP server of the live page: JSON requests, and answers streamed as lines of JSON."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any, cast
from urllib.parse import parse_qs, urlsplit

from broca.errors import BadInput, BrocaError
from broca.explorer.explorer import Explorer, events
from broca.explorer.export_folders import write_zip

LOCAL = ("127.0.0.1", "localhost", "::1")
_LARGEST = 1_000_000
"""Maximum size of a request in bytes."""

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{_POLICY} 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PUBLIC_HEADERS = _HEADERS | {"Content-Security-Policy": f"{_POLICY} https://huggingface.co"}
"""The page of a Space is in a frame of the hub."""


def require_token(host: str, token: str, public: bool) -> None:
    """Refuses an address that other machines reach without a token, unless it is public.

    Raises:
        BadInput: The address is open and has no token.
    """
    if host not in LOCAL and not token and not public:
        raise BadInput(f"`host` {host} is open to other machines: it needs a `token`, or `public`")


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
        self,
        explorer: Explorer,
        *,
        host: str = LOCAL[0],
        port: int = 0,
        token: str = "",
        public: bool = False,
    ) -> None:
        require_token(host, token, public)
        self._token = token
        self._headers = _PUBLIC_HEADERS if public else _HEADERS
        self._local = host in LOCAL
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler(explorer))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInput(
                f"`host` {host}, `port` {port} cannot be served ({reason}): choose another `port`"
            ) from error
        self._server.daemon_threads = True
        self.host, self.port = host, self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page, with the token if there is one."""
        return f"http://{self.host}:{self.port}/" + (f"?token={self._token}" if self._token else "")

    def close(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    def wait(self) -> None:
        """Waits until the server ends, such as by Ctrl+C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def _handler(self, served: Explorer) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(_Handler):
            explorer = served
            page_headers = self._headers

            def allowed(self) -> bool:
                return server.admits(self)

        return Handler

    def admits(self, request: BaseHTTPRequestHandler) -> bool:
        """Whether a request comes from the page itself and contains the token.

        On a local address only local names are served, which prevents DNS rebinding.
        """
        host = request.headers.get("Host", "")
        if self._local and urlsplit(f"//{host}").hostname not in LOCAL:
            return False
        origin = request.headers.get("Origin")
        # a proxy, such as a Space's, reports the public name of the page
        names = (host, request.headers.get("X-Forwarded-Host"))
        if origin is not None and urlsplit(origin).netloc not in names:
            return False
        if not self._token:
            return True
        query = parse_qs(urlsplit(request.path).query).get("token", [""])[0]
        token = request.headers.get("X-Token") or query
        return hmac.compare_digest(token.encode(), self._token.encode())


class _Handler(BaseHTTPRequestHandler):
    """A request."""

    explorer: Explorer
    page_headers: Mapping[str, str]
    protocol_version = "HTTP/1.1"

    def allowed(self) -> bool:
        """Whether the request may be answered."""
        raise NotImplementedError

    def log_message(self, *_: Any) -> None:
        """Logs nothing: stdout and stderr belong to the command."""

    def do_GET(self) -> None:  # name of the base class
        """Sends the page, its verifications and the status."""
        path = urlsplit(self.path).path
        if not self.allowed():
            self._refuse()
        elif path == "/":
            self._send(self.explorer.page(), "text/html")
        elif path == "/api/model":
            self._send_json(self.explorer.describe())
        elif path == "/api/status":
            self._send_json(self.explorer.status())
        elif path == "/api/tasks":
            self._guarded(lambda: list(self.explorer.measurer.tasks()))
        elif path.startswith(("/verification/", "/export/")):
            kind, _, number = path[1:].partition("/")
            self._send_made(kind, int(number) if number.isdecimal() else 0)
        else:
            self._send_json({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)

    def _send_made(self, kind: str, number: int) -> None:
        """Sends the page of a verification, or an export as a zip file."""
        try:
            if kind == "verification":
                self._send(self.explorer.verification_page(number), "text/html")
                return
            folder = self.explorer.exports[number]
        except BadInput as error:
            self._send_json({"error": str(error)}, HTTPStatus.NOT_FOUND)
            return
        self._begin("application/zip", **{
            "Content-Disposition": f'attachment; filename="{folder.name}.zip"'
        })  # fmt: skip
        with suppress(OSError):  # the tab was closed
            write_zip(folder, cast(IO[bytes], self.wfile))

    def do_POST(self) -> None:
        """Answers questions."""
        if not self.allowed() or self.headers.get_content_type() != "application/json":
            self.close_connection = True
            self._refuse()
            return
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > _LARGEST:
            self.close_connection = True
            error = {"error": "the request is too large"}
            self._send_json(error, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            question = _Question(json.loads(self.rfile.read(int(size))))
        except (ValueError, RecursionError):
            self._send_json({"error": "the request is not a JSON object"}, HTTPStatus.BAD_REQUEST)
            return
        explorer = self.explorer
        path = urlsplit(self.path).path
        if path == "/api/answer":
            self._stream(question)
            return
        answers: dict[str, Callable[[], Any]] = {
            "/api/score": lambda: explorer.score(
                question.text("task"), question.names(), scale=question.number("scale")
            ),
            "/api/slopes": lambda: explorer.slopes(
                question.text("task"), question.names(), scale=question.number("scale")
            ),
            "/api/verify": lambda: explorer.verify(question.text("task"), question.names()),
            "/api/export": lambda: explorer.export(
                question.text("kind"), question.names(), scale=question.number("scale")
            ),
            "/api/set": lambda: explorer.named(question.text("text")),
        }
        if path not in answers:
            self._send_json({"error": "there is no such question"}, HTTPStatus.NOT_FOUND)
            return
        self._guarded(answers[path])

    def _guarded(self, answer: Callable[[], Any]) -> None:
        """Sends an answer, or an error in one line."""
        try:
            self._send_json(answer())
        except BrocaError as error:
            self._send_json({"error": " ".join(str(error).split())}, HTTPStatus.BAD_REQUEST)
        except Exception as error:  # noqa: BLE001  # the page says it; the server goes on
            text = f"{type(error).__name__}: this could not be answered"
            self._send_json({"error": text}, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _stream(self, question: _Question) -> None:
        try:
            stream = self.explorer.answer(
                question.text("prompt"),
                question.names(),
                scale=question.number("scale"),
                longest=int(question.number("longest") or 64),
                chat=bool(question.data.get("chat", True)),
            )
        except BrocaError as error:
            self._send_json({"error": " ".join(str(error).split())}, HTTPStatus.BAD_REQUEST)
            return
        self._begin("application/x-ndjson; charset=utf-8")
        try:
            for line in events(stream):
                self.wfile.write(line.encode())
                self.wfile.flush()
        except OSError:  # the tab was closed
            stream.cancelled = True

    def _begin(self, kind: str, **headers: str) -> None:
        """Begins an answer of unknown length, which ends with the connection."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        for name, value in {"Content-Type": kind, "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self._send_headers()

    def _refuse(self) -> None:
        self._send_json(
            {"error": "this page answers only itself: open the address that broca printed"},
            HTTPStatus.FORBIDDEN,
        )

    def _send_json(self, data: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(data, ensure_ascii=False), "application/json", status)

    def _send(self, text: str, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        content = text.encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self._send_headers()
            self.wfile.write(content)
        except OSError:  # the tab was closed
            self.close_connection = True

    def _send_headers(self) -> None:
        for name, value in self.page_headers.items():
            self.send_header(name, value)
        self.end_headers()


class _Question:
    """The content of a request, checked field by field."""

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise ValueError("no object")
        self.data = data

    def text(self, name: str) -> str:
        value = self.data.get(name, "")
        if not isinstance(value, str):
            raise BadInput(f"`{name}` must be text")
        return value

    def number(self, name: str) -> float:
        value = self.data.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadInput(f"`{name}` must be a number")
        return float(value)

    def names(self) -> list[str]:
        value = self.data.get("off", [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise BadInput("`off` must be a list of names")
        return value
