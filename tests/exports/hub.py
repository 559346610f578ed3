"""A local stand-in for the Hugging Face hub, with the endpoints that an upload needs."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """The repositories that were created and the files that were uploaded."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.address = ""


@contextmanager
def fake_hub(*, refuses: bool = False):
    """Serves the endpoints of `create_repo` and `upload_folder` for small files."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def answer(self, content, status=200):
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            name = self.path.removeprefix("/api/models/").partition("/revision")[0]
            exists = name in hub.repositories
            self.answer({"id": name, "sha": "0" * 40, "siblings": []}, 200 if exists else 404)

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if refuses:
                self.answer({"error": "no rights"}, 403)
            elif self.path == "/api/repos/create":
                request = json.loads(body)
                owner = request.get("organization")
                name = f"{owner}/{request['name']}" if owner else request["name"]
                hub.repositories.setdefault(name, {})
                hub.private[name] = request.get("private") or request.get("visibility") == "private"
                self.answer({"url": f"{hub.address}/{name}", "id": name, "name": name})
            elif self.path == "/api/validate-yaml":
                self.answer({"errors": [], "warnings": []})
            elif "/preupload/" in self.path:
                files = [
                    {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for file in json.loads(body)["files"]
                ]
                self.answer({"files": files})
            elif "/commit/" in self.path:
                name = self.path.removeprefix("/api/models/").partition("/commit/")[0]
                for line in body.splitlines():
                    entry = json.loads(line)
                    if entry["key"] == "file":
                        content = base64.b64decode(entry["value"]["content"])
                        hub.repositories[name][entry["value"]["path"]] = content
                url = f"{hub.address}/{name}/commit/1"
                self.answer({"commitUrl": url, "commitOid": "1" * 40, "success": True})
            else:
                self.answer({"error": "unknown"}, 404)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
