"""A server of completions for tests of `observe`: a token is a word, an answer is as long as asked for, and every prompt and
its answer is a line of a log. What is asked without streaming is a line of LOG.asked.

    python3 completions.py LOG [usage] [tokenize] [pairs] [thinks] [fails] [hangs]

It prints its port. With usage or tokenize it says how long prompts are, and with usage also answers. With pairs a piece of a stream
has two tokens, and with thinks the first half of a chat's answer is reasoning. With fails a stream has one token and then an error,
an object in a chat (as of vLLM) and else a text (as of TGI), and with hangs it ends a minute after its first token.
"""
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = open(sys.argv[1], "w")
ASKED = open(sys.argv[1] + ".asked", "w")
SAYS = set(sys.argv[2:])
LOCK = threading.Lock()
FIXED = 3  # of every prompt, as a template has


def tokens(text):
    return FIXED + len(text.split())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            if "tokenize" in SAYS:
                self.answer(json.dumps({"tokens": list(range(tokens(asked["content"])))}))
            else:
                self.send_error(404)
            return
        if not self.path.startswith("/v1/"):
            self.send_error(404)
            return
        chat = self.path.endswith("/chat/completions")
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        usage = {"usage": {"prompt_tokens": tokens(prompt), "completion_tokens": asked["max_tokens"]}} if "usage" in SAYS else {}
        if not asked["stream"]:
            print(prompt, file=ASKED, flush=True)
            self.answer(json.dumps({"choices": [{"message": {"content": "x "}} if chat else {"text": "x "}], **usage}))
            return
        words = ["w%d " % i for i in range(asked["max_tokens"])]
        pieces = ["".join(words[i:i + 2]) for i in range(0, len(words), 2)] if "pairs" in SAYS else words
        thought = len(pieces) // 2 if "thinks" in SAYS else 0
        lines = [{"choices": [{"delta": {"content" if i >= thought else "reasoning_content": w}} if chat else {"text": w}]} for i, w in enumerate(pieces)] + [{"choices": [], **usage}]
        with LOCK:
            LOG.write(json.dumps({"path": self.path, "model": asked["model"], "prompt": prompt, "answer": "".join(words)}) + "\n")
            LOG.flush()
        if "fails" in SAYS:
            error = {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500} if chat else "overloaded"
            lines[1:] = [{"error": error}]
        if "hangs" in SAYS:
            self.answer("data: %s\n\n" % json.dumps(lines.pop(0)))
            time.sleep(60)
            return
        self.answer("".join("data: %s\n\n" % json.dumps(x) for x in lines) + "data: [DONE]\n\n")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
