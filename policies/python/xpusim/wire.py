"""A policy behind the protocol (docs/policy-protocol.md): lines of JSON on standard input and output.

`serve(MyPolicy)` makes a program of a class: `--policy 'exec:python3 my_policy.py'`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, List, Optional, Type

from .policy import Device, Launch, Llm, Machine, Param, Pass, Policy, Refused, Request, Shape

PROTOCOL = 1

_decode = json.JSONDecoder().scan_once


def _encoder() -> Callable[[Any], str]:
    """json's own encoder in C; `JSONEncoder.encode` would make it anew for every line."""
    e = json.JSONEncoder(separators=(",", ":"), check_circular=False)
    make = json.encoder.c_make_encoder
    if make is None:
        return e.encode
    once = make(None, e.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
    return lambda what: "".join(once(what, 0))


_encode = _encoder()


class _NoOutput:
    """What print() meets: standard output belongs to the protocol."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise RuntimeError("wrote to standard output, which carries the protocol "
                           "(print to standard error): " + text.strip())

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


class _Wire:
    """One conversation. Lines are written and read whole, without buffers in between."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        policy._wire = self
        policy._out, policy._was = [], []
        policy._passes = {}
        policy._launches = {}
        policy.requests = {}
        policy.free_slots = []
        self.sent: List[Any] = []
        self.before: List[Any] = []

    # ---- lines ----

    def read(self) -> Any:
        line = os.read(0, 8192)
        while not line.endswith(b"\n"):
            got = os.read(0, 65536)
            if not got:
                return None
            line += got
        return _decode(line.decode(), 0)[0]

    @staticmethod
    def write(what: Any) -> None:
        line = _encode(what).encode() + b"\n"
        while line:
            line = line[os.write(1, line):]

    # ---- what a policy may say in the middle of a call ----

    def ask(self, questions: List[Any]) -> List[Any]:
        if not questions:
            return []
        self.write(("ask", questions))
        return self._answer()[1]

    def _take(self) -> None:
        p = self.policy
        self.sent, p._out, self.before, p._was = p._out, [], p._was, []

    def sync(self) -> bool:
        self._take()
        self.write(("sync", self.sent))
        return self.learn(self._answer())

    def _answer(self) -> Any:
        m = self.read()
        if m is None:
            raise SystemExit(0)  # xpusim has gone
        return m

    # ---- what changed ----

    def learn(self, m: List[Any]) -> bool:
        """Takes a "schedule" or "result" message in, hooks included. True: nothing was refused."""
        p = self.policy
        _, p.now_ns, p.epoch, p.kv_free_tokens, p.free_slots, events, requests, passes, launches, refusals = m
        for index, _ in reversed(refusals):
            self._take_back(index)
        for index, error in refusals:
            p.refused(Refused(self.sent[index], error))
        for e in events:
            if e[0] == "arrived":
                r = p.requests[e[1]] = Request()
                r._arrived(e[1:])
                r.data = None
        for x in passes:
            q = p._passes[x[0]]
            once = q._changed(x[1:])
            if once:
                shape, = q._formed(once)
                if q.shape != tuple(shape):
                    q.shape = Shape(*shape)
        for x in launches:
            launch = p._launches[x[0]]
            once = launch._changed(x[1:])
            if once:
                launch._made(once)
        gone = []
        known, live = p._passes, p.requests
        for x in requests:
            r = live[x[0]]
            r._changed(x[1:])
            if r.pass_ is not None:
                r.pass_ = known[r.pass_] if r.pass_ else None
            if r.first_service_ns is None and not r.preemptions:
                r.reused_tokens = r.kv_tokens  # it waits: a shared prefix may come or go meanwhile
            if r.state == "finished" or r.state == "shed":
                gone.append(x[0])
        if events:
            self._tell(events)
        for x in passes:
            if x[1] == "done" or x[1] == "cancelled":
                del p._passes[x[0]]
        for x in launches:
            if x[1] == "ended":
                del p._launches[x[0]]
        for i in gone:
            del p.requests[i]
        return not refusals

    def _tell(self, events: List[Any]) -> None:
        p = self.policy
        for e in events:
            what = e[0]
            if what == "pass_done":
                q = p._passes[e[1]]
                q.emitted = e[2]
                p.pass_done(q)
            elif what == "launch_done":
                launch = p._launches[e[1]]
                launch.outcome = e[2]
                p.launch_done(launch)
            elif what == "arrived":
                p.request_arrived(p.requests[e[1]])
            elif what == "cancelled":
                p.request_cancelled(p.requests[e[1]])
            elif what == "kv_moved":
                p.kv_moved(p.requests[e[1]])
            elif what == "resident_ready":
                p.resident_ready(*e[1:])

    def _take_back(self, index: int) -> None:
        """Takes back what objects showed as if an action had been accepted."""
        p, a = self.policy, self.sent[index]
        for of, member, value in self.before[index]:
            setattr(of, member, value)
        if a[0] == "form":
            del p._passes[a[1]]
        elif a[0] == "launch":
            del p._launches[a[1]]

    # ---- a run ----

    def init(self, m: Any) -> None:
        p = self.policy
        p.param = m["params"]
        p.seed = m["seed"]
        p.kv_block_tokens = m["kv_block_tokens"]
        p.kv_capacity_tokens = p.kv_free_tokens = m["kv_capacity_tokens"]
        machine = m["machine"]
        devices = tuple(Device(index=i, **d) for i, d in enumerate(machine.pop("devices")))
        p.machine = Machine(devices=devices, **machine)
        p.models = [Llm(layer=tuple(llm.pop("layer")), **llm) for llm in m.get("models", [m["llm"]])]
        p.llm = p.models[0]
        p.draft_model = m.get("draft_model", 0)
        if "random" in sys.modules:  # the policy's, unless it has its own
            sys.modules["random"].seed(p.seed)
        p.init()
        self.flush()

    def flush(self) -> None:
        self._take()
        self.write(("do", self.sent, False) if self.policy.once else ("do", self.sent))

    def run(self) -> None:
        hello = self.read()
        if hello is None:
            return
        self.write(describe(type(self.policy)))
        m = self.read()
        if m is None:
            return  # it was only asked what it is
        self.init(m["init"])
        schedule, learn, flush = self.policy.schedule, self.learn, self.flush
        while True:
            m = self.read()
            if m is None:
                break
            learn(m)
            schedule()
            flush()
        self.policy.exit()


def _members(cls: Type[Policy], name: str) -> Any:
    """Those of a tuple: without its comma, a tuple of one is that one, and would be read as its own members."""
    value = getattr(cls, name)
    if isinstance(value, (str, dict, Param)):
        raise TypeError("%s: must be a tuple, which ends with a comma where it has one member" % name)
    return list(value)


def _param(p: Param) -> Any:
    d = {"name": p.name, "default": p.default, "help": p.help}
    if p.choices:
        return dict(d, type="choice", choices=list(p.choices))
    if isinstance(p.default, bool):
        return dict(d, type="bool")
    return dict(d, type="int" if isinstance(p.default, int) else "number", min=p.min, max=p.max)


def describe(cls: Type[Policy]) -> Any:
    """The first answer: what the policy is."""
    name = cls.name or "".join("-" + c.lower() if c.isupper() else c for c in cls.__name__).strip("-").replace("_", "-")
    doc = (cls.summary or cls.__doc__ or name).strip().splitlines()[0]
    return {"protocol": PROTOCOL, "name": name, "summary": doc, "flags": _members(cls, "flags"),
            "needs": _members(cls, "needs"), "params": [_param(p) for p in _members(cls, "params")], "limit_s": cls.limit_s,
            "sleeps": cls.sleeps, "steady": cls.steady,
            **({"ablations": _members(cls, "ablations")} if cls.ablations else {})}


def _reason(e: BaseException) -> str:
    """The exception and where in the policy's own file it came from."""
    import traceback
    own = [f for f in traceback.extract_tb(e.__traceback__) if not f.filename.startswith((os.path.dirname(__file__), "<frozen "))]
    where = " (%s:%s, %s)" % (os.path.basename(own[-1].filename), own[-1].lineno, own[-1].name) if own else ""
    jailed = isinstance(e, OSError) and e.filename is not None and os.environ.get("XPUSIM_JAIL") != "off"
    sees = "; a policy sees the system's files, its own, and modules next to it (docs/policy-protocol.md, The jail)" if jailed else ""
    return "%s: %s%s%s" % (type(e).__name__, e, where, sees)


def serve(cls: Type[Policy]) -> None:
    """Runs one policy over standard input and output until xpusim closes them."""
    sys.stdout = _NoOutput()  # type: ignore[assignment]
    wire: Optional[_Wire] = None
    try:
        wire = _Wire(cls())
        wire.run()
    except BrokenPipeError:
        pass
    except Exception as e:  # pylint: disable=broad-except
        described = wire is not None and hasattr(wire.policy, "param")
        try:
            _Wire.write(("error", _reason(e)) if described else {"error": _reason(e)})
        except OSError:
            pass
        sys.exit(1)


def load(path: str, name: str, code: Any = None) -> Type[Policy]:
    """The class of that name in a file; code: of the file, where it has been compiled."""
    import importlib.util
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise ImportError(path + " is not a Python file (*.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if code is None:
        spec.loader.exec_module(module)
    else:
        exec(code, module.__dict__)  # pylint: disable=exec-used
    cls = getattr(module, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Policy)):
        there = sorted(n for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, Policy) and c is not Policy)
        raise TypeError("%s has no class %s derived from xpusim.Policy%s" % (
            os.path.basename(path), name, "; it has " + ", ".join(there) if there else ""))
    return cls


def main() -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = None
    if sys.argv[3:] == ["--fork-runs"]:
        from .zygote import fork_runs
        code = fork_runs(sys.argv[1])
        del sys.argv[3:]
    sys.stdout = _NoOutput()  # type: ignore[assignment]
    try:
        cls = load(sys.argv[1], sys.argv[2], code)
    except Exception as e:  # pylint: disable=broad-except
        _Wire.write({"error": _reason(e)})
        sys.exit(1)
    serve(cls)
    sys.stderr.flush()
    os._exit(0)  # an interpreter that is taken down by its rules takes as long as a short run
