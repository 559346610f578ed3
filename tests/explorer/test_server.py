"""The page over HTTP: access control, and the answer to each kind of request."""

import http.client
import io
import json
import zipfile

import pytest

import broca
from broca.errors import BadInput
from broca.explorer import Explorer, ExplorerSubject
from broca.explorer.server import Server


@pytest.fixture(scope="module")
def explorer(planted):
    """An explorer on the planted model."""
    subject = ExplorerSubject("planted", tasks=("sorting",))
    with Explorer(planted, subject, verify=broca.verify, export=broca.export) as page_explorer:
        yield page_explorer


@pytest.fixture(scope="module")
def server(explorer):
    """A local server without a token."""
    local_server = Server(explorer)
    yield local_server
    local_server.close()


def ask(server, path, data=None, **headers):
    """Returns the status, headers and content of an answer: text, or a file as bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = None if data is None else json.dumps(data)
    kind = {"Content-Type": "application/json"} if data is not None else {}
    method = "GET" if data is None else "POST"
    connection.request(method, path, body, {**kind, **headers})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    is_file = reply.getheader("Content-Disposition") is not None
    return reply.status, dict(reply.getheaders()), content if is_file else content.decode()


def test_the_page_and_the_model_are_served(server, planted):
    """The page is served with headers that keep other sites out; the model and tasks, as JSON."""
    status, headers, text = ask(server, "/")
    assert status == 200
    assert text.startswith("<!doctype html>")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    _, _, text = ask(server, "/api/model")
    assert json.loads(text)["components"] == list(planted.components.names)
    assert json.loads(ask(server, "/api/tasks")[2]) == ["sorting"]


def test_answers_stream(server):
    """An answer is a stream of JSON lines, and two of them end the two rows."""
    status, headers, text = ask(server, "/api/answer", {"prompt": "sort b a =", "longest": 3})
    assert status == 200
    assert headers["Content-Type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in text.splitlines()]
    assert sum("end" in line for line in lines) == 2


def test_questions_are_answered_or_refused_in_one_line(server):
    """Bad requests get status 400 and one line; unknown addresses get 404."""
    status, _, text = ask(server, "/api/score", {"task": "sorting", "off": ["L0H1"]})
    assert status == 200
    assert json.loads(text)["items"] == 40
    assert json.loads(ask(server, "/api/set", {"text": "L0H1,L1H1"})[2]) == ["L0H1", "L1H1"]
    assert json.loads(ask(server, "/api/status")[2])["waiting"] == 0
    for path, data, expected in (
        ("/api/score", {"task": "cooking"}, "cooking"),
        ("/api/score", {"task": 3}, "Expected `str`, got `int` - at `$.task`"),
        ("/api/score", {"off": "L0H1"}, "`array`, got `str` - at `$.off`"),
        ("/api/answer", {"prompt": ""}, "prompt is empty"),
        ("/api/set", {"text": "L9H9"}, "no component"),
        ("/api/score", [], "is not a JSON object"),
    ):
        status, _, text = ask(server, path, data)
        assert status == 400
        error = json.loads(text)["error"]
        assert expected in error
        assert "\n" not in error
    assert ask(server, "/api/nothing", {})[0] == 404
    assert ask(server, "/nothing")[0] == 404
    assert ask(server, "/verification/7")[0] == 404


def test_a_set_is_exported_and_downloaded(server, explorer):
    """An export is checked and downloaded as a zip; a refused export leaves no folder."""
    status, _, text = ask(server, "/api/export", {"kind": "heads", "off": ["L0H1", "L1H2"]})
    answer = json.loads(text)
    assert status == 200
    assert answer["name"] == "planted-heads-1"
    assert "32 of 32 continuations as broca's" in answer["text"]
    status, headers, content = ask(server, f"/export/{answer['export']}")
    assert status == 200
    assert headers["Content-Disposition"] == 'attachment; filename="planted-heads-1.zip"'
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        listed = json.loads(archive.read("planted-heads-1/heads.json"))
    assert listed["heads"] == [[0, 1], [1, 2]]
    for data, expected in (
        ({"kind": "heads", "off": []}, "no components are named"),
        ({"kind": "sculpture", "off": ["L0H1"]}, "`kind` 'sculpture' is unknown"),
    ):
        status, _, text = ask(server, "/api/export", data)
        assert status == 400
        assert expected in json.loads(text)["error"]
    folder = explorer.exported(answer["export"])
    assert [place.name for place in folder.parent.iterdir()] == ["planted-heads-1"]
    assert ask(server, "/export/2")[0] == 404


def test_foreign_pages_and_large_requests_are_refused(server):
    """Requests of another site's page, to another host name or from a form get status 403."""
    assert ask(server, "/api/answer", {}, **{"Content-Length": str(10**9)})[0] == 413
    assert ask(server, "/api/status", Origin="https://evil.example")[0] == 403
    assert ask(server, "/", Host="evil.example")[0] == 403
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(server, "/api/verify", {}, **form)[0] == 403
    assert ask(server, "/api/status", Origin=f"http://127.0.0.1:{server.port}")[0] == 200


def test_a_token_is_required_where_there_is_one(explorer):
    """A token is accepted in the address or in a header; a server on all addresses requires one."""
    with pytest.raises(BadInput, match="needs a `token`"):
        Server(explorer, host="0.0.0.0")
    server = Server(explorer, token="secret")
    try:
        assert server.url.endswith("?token=secret")
        assert ask(server, "/")[0] == 403
        assert ask(server, "/?token=wrong")[0] == 403
        assert ask(server, "/?token=secret")[0] == 200
        assert ask(server, "/api/status", **{"X-Token": "secret"})[0] == 200
    finally:
        server.close()


def test_a_public_page_needs_no_token_and_stands_in_the_hub_s_frame(explorer):
    """A public server needs no token, can be framed by the hub, and refuses other origins."""
    server = Server(explorer, host="0.0.0.0", public=True)
    try:
        status, headers, _ = ask(server, "/", Host="space:7860")
        assert status == 200
        assert "frame-ancestors https://huggingface.co" in headers["Content-Security-Policy"]
        outside = {"Host": "space:7860", "X-Forwarded-Host": "me-space.hf.space"}
        origins = {"https://me-space.hf.space": 200, "https://evil.example": 403}
        for origin, expected in origins.items():
            assert ask(server, "/api/status", Origin=origin, **outside)[0] == expected
    finally:
        server.close()


def test_a_taken_port_is_refused(explorer, server):
    """A port in use is refused in one line that names the parameter."""
    with pytest.raises(BadInput, match=f"`port` {server.port} cannot be served"):
        Server(explorer, port=server.port)
