#!/usr/bin/env python3
"""A reverse proxy that keeps what a client asks of a server.

    tests/clients/record.py --upstream http://127.0.0.1:8080 --out FILE --client NAME [--replace OLD=NEW ...]

Prints its own address, forwards everything (streams as they come) until Ctrl-C, then writes FILE: {"client", "notes",
"calls": [{"method", "path", "headers", "body", "status", "content_type"}]}. Headers that hold secrets or say nothing
about the request are left out; OLD=NEW takes folders of the recording machine out of bodies.
"""
import argparse
import http.client
import http.server
import json
import pathlib
import sys
import threading
import urllib.parse

# Names of this recording's user, session and machine.
IDENTITY = {"x-claude-code-session-id", "session_id", "session-id", "thread-id", "x-client-request-id", "x-codex-installation-id",
            "x-codex-turn-metadata", "x-codex-window-id", "conversation_id"}  # fmt: skip
SECRET = {"authorization", "x-api-key", "cookie", "proxy-authorization"}
DULL = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding", "keep-alive", "sec-fetch-mode"}
HOP = {"connection", "transfer-encoding", "keep-alive", "host", "content-length"}


class Recorder:
    """The proxy as a thread: `url` is its address, `calls` what came by; what the server said stands in a call's "answer", once
    it is whole, and is not written."""

    def __init__(self, upstream, replace=()):
        self.upstream = urllib.parse.urlsplit(upstream)
        self.replace = list(replace)
        self.calls, self.lock = [], threading.Lock()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                recorder.forward(self)

            do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = do_OPTIONS = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def forward(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        call = self._note(handler, body)
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in HOP}
        upstream = http.client.HTTPConnection(self.upstream.hostname, self.upstream.port, timeout=1800)
        handler.close_connection = True
        try:
            upstream.request(handler.command, handler.path, body=body or None, headers=headers)
            response = upstream.getresponse()
            call["status"], call["content_type"] = response.status, response.getheader("Content-Type", "")
            handler.send_response(response.status)
            for key, value in response.getheaders():
                if key.lower() not in HOP and key.lower() not in ("date", "server"):
                    handler.send_header(key, value)
            handler.send_header("Connection", "close")
            handler.end_headers()
            pieces = []
            while piece := response.read1(65536):
                pieces.append(piece)
                handler.wfile.write(piece)
                handler.wfile.flush()
            call["answer"] = b"".join(pieces).decode("utf-8", "replace")
        except OSError:
            call.setdefault("status", 0)  # the client, or the server, went away
        finally:
            upstream.close()

    def _note(self, handler, body):
        text = body.decode("utf-8", "replace")
        for old, new in self.replace:
            text = text.replace(old, new)
        try:
            kept = json.loads(text) if text else None
        except ValueError:
            kept = text
        if isinstance(kept, dict):
            for key in {"metadata", "client_metadata"} & set(kept):
                kept[key] = {"user_id": "user"}
        headers = {k.lower(): v for k, v in handler.headers.items() if k.lower() not in SECRET | DULL | IDENTITY}
        call = dict(method=handler.command, path=handler.path, headers=headers, body=kept)
        with self.lock:
            self.calls.append(call)
        return call

    def write(self, out, client, notes):
        calls = [{key: value for key, value in call.items() if key != "answer"} for call in self.calls]
        document = dict(client=client, notes=notes, calls=calls)
        pathlib.Path(out).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def main():
    parser = argparse.ArgumentParser(description="records what a client asks of a server")
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--client", required=True, help="name and version")
    parser.add_argument("--notes", default="whole", help="what was trimmed or replaced by hand")
    parser.add_argument("--replace", action="append", default=[], metavar="OLD=NEW")
    args = parser.parse_args()
    recorder = Recorder(args.upstream, [pair.split("=", 1) for pair in args.replace])
    print(recorder.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        recorder.write(args.out, args.client, args.notes)
        print(f"{len(recorder.calls)} calls in {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
