"""The HTTP server of the live page: JSON requests, and answers streamed as lines of JSON."""

import hmac
import json
import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any, cast
from urllib.parse import parse_qs, urlsplit

import msgspec

from broca.errors import BadInput, BrocaError
from broca.explorer.explorer import Explorer

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


class _Http(ThreadingHTTPServer):
    """The sockets of a server, which its handlers refer to."""

    daemon_threads = True
    explorer: Explorer
    token: str
    local: bool
    page_headers: Mapping[str, str]


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
        try:
            self._server = _Http((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInput(
                f"`host` {host}, `port` {port} cannot be served ({reason}): choose another `port`"
            ) from error
        self._server.explorer, self._server.token = explorer, token
        self._server.local = host in LOCAL
        self._server.page_headers = _PUBLIC_HEADERS if public else _HEADERS
        self.host, self.port = host, self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page, with the token if there is one."""
        token = f"?token={self._server.token}" if self._server.token else ""
        return f"http://{self.host}:{self.port}/{token}"

    def close(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    def wait(self) -> None:
        """Waits until the server ends, such as by Ctrl+C."""
        while self._thread.is_alive():
            self._thread.join(0.5)


class Question(msgspec.Struct):
    """The content of a request."""

    task: str = ""
    off: list[str] = []
    scale: float = 0.0
    prompt: str = ""
    longest: float = 64
    chat: bool = True
    kind: str = ""
    text: str = ""


class _Handler(BaseHTTPRequestHandler):
    """A request."""

    server: _Http
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Logs nothing: stdout and stderr belong to the command."""

    def admits(self) -> bool:
        """Whether the request comes from the page itself and contains the token.

        On a local address only local names are served, which prevents DNS rebinding.
        """
        host = self.headers.get("Host", "")
        if self.server.local and urlsplit(f"//{host}").hostname not in LOCAL:
            return False
        origin = self.headers.get("Origin")
        # a proxy, such as a Space's, reports the public name of the page
        names = (host, self.headers.get("X-Forwarded-Host"))
        if origin is not None and urlsplit(origin).netloc not in names:
            return False
        query = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        token = self.headers.get("X-Token") or query
        return not self.server.token or hmac.compare_digest(
            token.encode(), self.server.token.encode()
        )

    def do_GET(self) -> None:  # name of the base class
        """Sends the page, its verifications and the status."""
        path, explorer = urlsplit(self.path).path, self.server.explorer
        if not self.admits():
            self._refuse()
        elif path == "/":
            self._send(explorer.page(), "text/html")
        elif path == "/api/model":
            self._send_json(explorer.describe())
        elif path == "/api/status":
            self._send_json(explorer.status())
        elif path == "/api/tasks":
            self._guarded(lambda: list(explorer.measurer.tasks()))
        elif path.startswith(("/verification/", "/export/")):
            kind, _, number = path[1:].partition("/")
            self._send_made(kind, int(number) if number.isdecimal() else 0)
        else:
            self._send_json({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)

    def _send_made(self, kind: str, number: int) -> None:
        """Sends the page of a verification, or an export as a zip file."""
        try:
            if kind == "verification":
                self._send(self.server.explorer.verification_page(number), "text/html")
                return
            folder = self.server.explorer.exported(number)
        except BadInput as error:
            self._send_json({"error": str(error)}, HTTPStatus.NOT_FOUND)
            return
        self._begin("application/zip", **{
            "Content-Disposition": f'attachment; filename="{folder.name}.zip"'
        })  # fmt: skip
        to = cast(IO[bytes], self.wfile)
        with suppress(OSError), zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                archive.write(file, f"{folder.name}/{file.relative_to(folder)}")

    def do_POST(self) -> None:
        """Answers questions."""
        if not self.admits() or self.headers.get_content_type() != "application/json":
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
            question = msgspec.json.decode(self.rfile.read(int(size)), type=Question)
        except msgspec.MsgspecError as error:
            text = f"the request is not a JSON object with these fields ({error})"
            self._send_json({"error": text}, HTTPStatus.BAD_REQUEST)
            return
        explorer, off, scale = self.server.explorer, question.off, question.scale
        path = urlsplit(self.path).path
        if path == "/api/answer":
            self._stream(question)
            return
        answers: dict[str, Callable[[], Any]] = {
            "/api/score": lambda: explorer.score(question.task, off, scale=scale),
            "/api/slopes": lambda: explorer.slopes(question.task, off, scale=scale),
            "/api/verify": lambda: explorer.verify(question.task, off),
            "/api/export": lambda: explorer.export(question.kind, off, scale=scale),
            "/api/set": lambda: explorer.named(question.text),
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

    def _stream(self, question: Question) -> None:
        try:
            stream = self.server.explorer.answer(
                question.prompt, question.off, scale=question.scale,
                longest=int(question.longest) or 64, chat=question.chat,
            )  # fmt: skip
        except BrocaError as error:
            self._send_json({"error": " ".join(str(error).split())}, HTTPStatus.BAD_REQUEST)
            return
        self._begin("application/x-ndjson; charset=utf-8")
        try:
            for event in stream:
                self.wfile.write(json.dumps(event, ensure_ascii=False).encode() + b"\n")
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
        for name, value in self.server.page_headers.items():
            self.send_header(name, value)
        self.end_headers()
