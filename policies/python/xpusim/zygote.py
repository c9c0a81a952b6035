"""One interpreter for many runs (policies/external/zygote.h): a process that forks for each of them.

No line of the policy runs here: it is compiled, and modules of the standard library that it imports
are loaded. A fork confines itself further before it runs the policy, and ends with the run."""

import array
import ctypes
import importlib.machinery
import os
import resource
import struct
import sys
from types import CodeType
from typing import Any, List, Optional, Sequence, Tuple

import _socket

NOT_CONFINED = 125
CONTROL = 3
NO_NEW_PRIVS, PDEATHSIG, SECCOMP = 38, 1, 22  # of prctl
SIGKILL = 9


def _standard(name: str, own: Sequence[str]) -> bool:
    """It is a module of the standard library, and nothing of the policy is in its place."""
    if name in sys.builtin_module_names:
        return True
    found = importlib.machinery.PathFinder.find_spec(name)
    library = os.path.dirname(os.__file__)
    where = os.path.dirname(found.origin) if found is not None and found.origin else ""
    if os.path.basename(found.origin) == "__init__.py" if where else False:
        where = os.path.dirname(where)
    return where in (library, os.path.join(library, "lib-dynload")) and \
        importlib.machinery.PathFinder.find_spec(name, list(own)) is None


def _imports(tree: Any) -> List[str]:
    """What a file imports before anything else of it runs, as far as its text says."""
    import ast
    names = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    return names


def _warm(path: str, own: Sequence[str]) -> Optional[CodeType]:
    """The policy's code, and its modules of the standard library loaded. None: it has errors, which
    each run finds itself."""
    import importlib
    try:
        with open(path, "rb") as f:
            source = f.read()
        code = compile(source, path, "exec", dont_inherit=True)
        import ast
        before = set(sys.modules)
        for name in _imports(ast.parse(source)):
            root = name.split(".")[0]
            if root == "xpusim" or _standard(root, own):
                importlib.import_module(name)
        for root in {m.split(".")[0] for m in set(sys.modules) - before}:
            if importlib.machinery.PathFinder.find_spec(root, list(own)) is not None:
                raise ImportError(root)  # the policy has its own
        return code
    except Exception:  # pylint: disable=broad-except
        return None


def _confine(libc: Any, program: bytes, placeholder: int, parent: int) -> None:
    """Ends with the zygote; starts no process and reaches none (policies/external/jail_filter.c)."""
    code = b"".join(struct.pack("=HBBI", a, b, c, os.getpid() if k == placeholder else k)
                    for a, b, c, k in struct.iter_unpack("=HBBI", program))
    kept = ctypes.create_string_buffer(code, len(code))
    filter_ = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(kept)))
    zero = ctypes.c_ulong(0)
    if libc.prctl(PDEATHSIG, ctypes.c_ulong(SIGKILL), zero, zero, zero) != 0 or os.getppid() != parent or \
            libc.prctl(NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0 or \
            libc.prctl(SECCOMP, ctypes.c_ulong(2), ctypes.byref(filter_), zero, zero) != 0:
        os._exit(NOT_CONFINED)


def _take(control: Any) -> Tuple[str, List[int]]:
    """A request, and the descriptors that came with it."""
    text, more, _, _ = control.recvmsg(64, _socket.CMSG_SPACE(2 * 4))
    fds = array.array("i")
    for level, kind, data in more:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds.frombytes(data[:len(data) - len(data) % 4])
    return text.decode(), list(fds)


def _run(control: Any, fds: List[int], libc: Any, program: bytes, placeholder: int, parent: int) -> None:
    """In a fork: becomes the process of a run."""
    try:
        control.detach()
        os.dup2(fds[0], 0)
        os.dup2(fds[1], 1)
        os.closerange(CONTROL, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        _confine(libc, program, placeholder, parent)
    except BaseException:  # pylint: disable=broad-except
        os._exit(NOT_CONFINED)


def fork_runs(path: str) -> Optional[CodeType]:
    """Forks for every request; returns in each fork, with the policy's code where it is known. Ends
    with the socket."""
    import gc
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, CONTROL)
        line = b""
        while not line.endswith(b"\n"):
            got = os.read(0, 65536)
            if not got:
                os._exit(1)
            line += got
        number, digits = line.split()
        placeholder, program = int(number), bytes.fromhex(digits.decode())
        paths = os.environ.pop("XPUSIM_PYTHONPATH", None)
        more = [p for p in paths.split(":") if p] if paths else []
        code = _warm(path, [os.path.dirname(os.path.abspath(path))] + more)
        if paths is not None:
            os.environ["PYTHONPATH"] = paths
        parent = os.getpid()
        gc.collect()
        gc.freeze()
        os.write(1, b"ready\n")
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        child = 0
        while True:
            word, fds = _take(control)
            if word == "fork" and len(fds) == 2:
                child = os.fork()
                if child == 0:
                    _run(control, fds, libc, program, placeholder, parent)
                    sys.path[2:2] = more
                    return code
                os.close(fds[0])
                os.close(fds[1])
                control.send(b"%d 0" % child)
            elif word in ("wait", "look"):
                pid, status = os.waitpid(child, 0 if word == "wait" else os.WNOHANG)
                control.send(b"%d %d" % (pid, status))
            else:
                os._exit(0)
    except BaseException:  # pylint: disable=broad-except
        os._exit(1)
