"""A toy of an OpenAI server on the loopback: completions and chat, streamed or not. A word is a token, of which it says
one every 4 ms; nothing is computed. `toy_server.py PORT`."""
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def asked(query, chat):
    if not chat:
        return str(query["prompt"])
    contents = [message["content"] for message in query["messages"]]
    return " ".join(c if isinstance(c, str) else " ".join(part.get("text", "") for part in c) for c in contents)


class Toy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, document):
        body = b"data: " + (document if isinstance(document, bytes) else json.dumps(document).encode()) + b"\n\n"
        self.wfile.write(b"%x\r\n" % len(body) + body + b"\r\n")
        self.wfile.flush()

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "toy", "object": "model"}]})

    def do_POST(self):
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chat = "chat" in self.path
        n = min(int(query.get("max_completion_tokens") or query.get("max_tokens") or 16), 64)
        prompt = len(asked(query, chat).split())
        usage = {"prompt_tokens": prompt, "completion_tokens": n, "total_tokens": prompt + n}
        kind = "text_completion" if not chat else "chat.completion.chunk" if query.get("stream") else "chat.completion"
        common = {"id": "toy-%d" % time.monotonic_ns(), "object": kind, "created": int(time.time()), "model": query["model"]}
        time.sleep(0.02)
        if not query.get("stream"):
            said = {"message": {"role": "assistant", "content": " word" * n}} if chat else {"text": " word" * n}
            self.answer({**common, "choices": [{"index": 0, "finish_reason": "length", **said}], "usage": usage})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(n):
            said = {"delta": {"role": "assistant", "content": " word"}} if chat else {"text": " word"}
            self.event({**common, "choices": [{"index": 0, "finish_reason": "length" if i == n - 1 else None, **said}]})
            time.sleep(0.004)
        if query.get("stream_options", {}).get("include_usage"):
            self.event({**common, "choices": [], "usage": usage})
        self.event(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Toy).serve_forever()
