"""The page over HTTP: access control, and the answer to each kind of request."""

import http.client
import json
import re
import socket
import time
from contextlib import ExitStack, closing, suppress
from urllib.request import urlopen

import pytest

from broca.errors import BadInput
from broca.explorer.server import LIMITS, Server

HERE = {"host": "127.0.0.1", "port": 0, "token": "", "public": False}


@pytest.fixture(scope="module")
def server(explorer):
    """A local server without a token."""
    with closing(Server(explorer, **HERE)) as local_server:
        yield local_server


def ask(server, path, data=None, **headers):
    """Returns the status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = None if data is None else json.dumps(data)
    kind = {"Content-Type": "application/json"} if data is not None else {}
    connection.request("GET" if data is None else "POST", path, body, {**kind, **headers})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, dict(reply.getheaders()), text


def answered(server, path, data=None):
    """Returns the JSON of an answer, or the line of a refused question with its status."""
    status, _, text = ask(server, path, data)
    answer = json.loads(text)
    return answer if status == 200 else f"{status}: {answer['error']}"


def test_the_page_and_the_model_are_served(server, planted):
    """The page is served with headers that keep other sites out; the model and tasks, as JSON."""
    status, headers, text = ask(server, "/")
    assert status == 200
    assert text.startswith("<!doctype html>")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert answered(server, "/api/model")["components"] == list(planted.components.names)
    assert answered(server, "/api/tasks") == ["sorting"]


def test_answers_stream(server):
    """An answer is a stream of JSON lines, and two of them end the two rows."""
    status, headers, text = ask(server, "/api/answer", {"prompt": "sort b a =", "longest": 3})
    assert status == 200
    assert headers["Content-Type"].startswith("application/x-ndjson")
    assert sum("end" in json.loads(line) for line in text.splitlines()) == 2


def test_questions_are_answered_or_refused_in_one_line(server):
    """Bad requests get status 400 and one line; unknown addresses get 404."""
    assert answered(server, "/api/score", {"task": "sorting", "off": ["L0H1"]})["items"] == 40
    assert answered(server, "/api/set", {"text": "L0H1,L1H1"}) == ["L0H1", "L1H1"]
    assert answered(server, "/api/status")["waiting"] == 0
    for path, data, expected in (
        ("/api/score", {"task": "cooking"}, "cooking"),
        ("/api/score", {"task": 3}, "Expected `str`, got `int` - at `$.task`"),
        ("/api/answer", {"prompt": ""}, "prompt is empty"),
        ("/api/set", {"text": "L9H9"}, "no component"),
        ("/api/score", [], "is not a JSON object"),
    ):
        refusal = answered(server, path, data)
        assert refusal.startswith("400: ")
        assert expected in refusal
        assert "\n" not in refusal
    for path, data in (("/api/nothing", {}), ("/nothing", None), ("/verification/7", None)):
        assert ask(server, path, data)[0] == 404


def test_foreign_pages_and_large_requests_are_refused(server):
    """Requests of another site's page, to another host name or from a form get status 403."""
    assert ask(server, "/api/answer", {}, **{"Content-Length": str(10**9)})[0] == 413
    assert ask(server, "/api/status", Origin="https://evil.example")[0] == 403
    assert ask(server, "/", Host="evil.example")[0] == 403
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(server, "/api/verify", {}, **form)[0] == 403
    assert ask(server, "/api/status", Origin=f"http://127.0.0.1:{server.port}")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        b"GET /verification/" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /verification/\xd9\xa1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /x?token=%ff%00 HTTP/1.1\r\nHost: localhost\r\nX-Token: \xff\r\n\r\n",
        b"\x00\xff\x16\x03\r\n\r\n",
        b"PUT /api/score HTTP/9.9\r\nHost: localhost\r\nOrigin: null\r\n\r\n",
        b"POST /api/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 10**5 + b"\r\n\r\n",
        *(
            b"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            for body in (
                b'{"x":' + b"[" * 10**5, b"\xff\xfe", b'{"prompt": "a", "longest": -1e999}',
                b'{"prompt": "\\ud800"}', b'{"scale": NaN}', b'{"prompt": 1}', b'{"off": "\xff"}',
            )
        ),
    ],
)  # fmt: skip
def test_odd_requests_get_a_status_and_no_traceback(server, capfd, sent):
    """Whatever is sent, the answer is a status of HTTP that refuses, and the page goes on."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(sent)
        assert re.match(rb"HTTP/1\.[01] 4\d\d ", connection.recv(2**16))
    assert ask(server, "/api/status")[0] == 200
    assert capfd.readouterr().err == ""


def test_connections_that_send_nothing_do_not_hold_the_page(explorer, monkeypatch):
    """Idle and dripping connections beyond the limit are closed, and the page is served again."""
    for name, limit in {"connection_limit": 8, "channel_timeout": 1, "cleanup_interval": 1}.items():
        monkeypatch.setitem(LIMITS, name, limit)
    with closing(Server(explorer, **HERE)) as server, ExitStack() as opened:
        address = ("127.0.0.1", server.port)
        held = [opened.enter_context(socket.create_connection(address)) for _ in range(20)]
        for _ in range(6):
            for connection in held:
                with suppress(OSError):
                    connection.sendall(b"G")
            time.sleep(0.5)
        assert ask(server, "/api/status")[0] == 200


def test_a_token_is_required_where_there_is_one(explorer):
    """A token is accepted in the address or in a header."""
    with closing(Server(explorer, **HERE | {"token": "a+b&é c#"})) as server:
        assert ask(server, "/")[0] == 403
        assert ask(server, "/?token=wrong")[0] == 403
        assert urlopen(server.url, timeout=30).status == 200
        assert ask(server, "/api/status", **{"X-Token": b"a+b&\xe9 c#"})[0] == 200
        server.close()  # and once more, as the context ends


def test_a_public_page_needs_no_token_and_stands_in_the_hub_s_frame(explorer):
    """A public server needs no token, can be framed by the hub, and refuses other origins."""
    with closing(Server(explorer, **HERE | {"host": "0.0.0.0", "public": True})) as server:
        status, headers, _ = ask(server, "/", Host="space:7860")
        assert status == 200
        assert "frame-ancestors https://huggingface.co" in headers["Content-Security-Policy"]
        outside = {"Host": "space:7860", "X-Forwarded-Host": "me-space.hf.space"}
        for origin, expected in (("https://me-space.hf.space", 200), ("https://evil.example", 403)):
            assert ask(server, "/api/status", Origin=origin, **outside)[0] == expected
    with pytest.raises(BadInput, match="`public` admits everyone without the `token`"):
        Server(explorer, **HERE | {"public": True, "token": "a"})


def test_a_taken_port_is_refused(explorer, server):
    """A port in use is refused in one line that names the parameter."""
    with pytest.raises(BadInput, match=f"`port` {server.port} cannot be served"):
        Server(explorer, **HERE | {"port": server.port})
