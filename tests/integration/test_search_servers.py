"""The lines of docs/indexers.md for OpenSearch and Meilisearch, against what their documentation says they do."""

import json
import os
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from test_cli import SITE
from test_cli_content_users import DOCS, PROGRAM, small

from lcc_scrapy.domain.entries import Operation

__all__ = ["small"]
PAGE = (DOCS / "indexers.md").read_text(encoding="utf-8")


class Server(HTTPServer):
    """Keeps documents by id; ``fails`` = the next request is refused."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.documents = {}
        self.requests = []
        self.fails = False

    def bulk(self, body):
        lines = iter([json.loads(line) for line in body.split(b"\n")[:-1]])
        for action in lines:
            ((kind, about),) = action.items()
            if kind == "index":
                self.documents[about["_id"]] = next(lines)
            else:
                assert kind == "delete"
                self.documents.pop(about["_id"], None)
        return {"took": 1, "errors": self.fails, "items": []}

    def add(self, body):
        for line in body.split(b"\n")[:-1]:
            document = json.loads(line)
            self.documents[document["docid"]] = document
        return {"taskUid": 1}

    def delete(self, body):
        assert json.loads(body) == {"filter": "departed = true"}
        self.documents = {key: one for key, one in self.documents.items() if not one["departed"]}
        return {"taskUid": 2}


class Answers(BaseHTTPRequestHandler):
    verbs = {  # noqa: RUF012
        ("/pages/_bulk", "application/x-ndjson"): Server.bulk,
        ("/indexes/pages/documents?primaryKey=docid", "application/x-ndjson"): Server.add,
        ("/indexes/pages/documents/delete", "application/json"): Server.delete,
    }

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(body)
        answer = self.verbs[self.path, self.headers["Content-Type"]](self.server, body)
        data = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def script_of(title, server, tmp_path):
    if shutil.which("curl") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "curl is missing: apt-get install curl"
        )
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    (script,) = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    script = re.sub(r"localhost:\d+", f"127.0.0.1:{server.server_port}", script)
    lcc = tmp_path / "bin" / "lcc"
    lcc.parent.mkdir(exist_ok=True)
    lcc.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    lcc.chmod(0o755)
    return script


def run(house, script):
    path = f"{house.folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", script], env={**house.environment, "PATH": path}, cwd=house.folder,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("title", "requests"), [("OpenSearch and Elasticsearch", 2), ("Meilisearch", 2)])
def test_a_search_server_has_what_there_is_after_every_run(small, server, tmp_path, title, requests):
    names = [f"page{number}" for number in range(600)]
    small.documents(*names)
    script = script_of(title, server, tmp_path)
    done = run(small, script)
    assert done.returncode == 0, done.stderr
    assert {one["link"] for one in server.documents.values()} == {SITE + name for name in names}
    assert len(server.requests) == requests
    small.push("page1", "page2", operation=Operation.REMOVE)
    small.documents("new")
    assert run(small, script).returncode == 0
    links = {one["link"] for one in server.documents.values()}
    assert links == {SITE + name for name in [*names, "new"]} - {SITE + "page1", SITE + "page2"}


def test_what_opensearch_refused_is_given_again(small, server, tmp_path):
    small.documents("a")
    script = script_of("OpenSearch and Elasticsearch", server, tmp_path)
    server.fails = True
    assert "nothing counts as exported" in (done := run(small, script)).stderr
    assert done.returncode == 1
    server.fails = False
    assert run(small, script).returncode == 0
    assert server.requests[0] == server.requests[1]
