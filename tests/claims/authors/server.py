"""A local server that speaks the chat-completions protocol, well or badly."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """Keeps what it was asked."""

    daemon_threads = True
    respond: Callable[[BaseHTTPRequestHandler], None]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.server.respond(self)

    def log_message(self, *_: Any) -> None:
        """Tests are quiet."""


@contextmanager
def serving(respond: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Server]:
    with Server() as server:
        server.respond = respond
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def send(handler: BaseHTTPRequestHandler, data: bytes, code: int = 200, **headers: str) -> None:
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def saying(content: Any) -> Callable[[BaseHTTPRequestHandler], None]:
    """A well-formed completion with this content."""
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]})
    return lambda handler: send(handler, body.encode())


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """A byte every now and then, for much longer than anybody waits."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(300):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def flooding(handler: BaseHTTPRequestHandler) -> None:
    """More than anybody should take."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(64):
        handler.wfile.write(b" " * 2**20)
