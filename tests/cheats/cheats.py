"""A policy that tries to learn what it must not, in every way of the table CHEATS, and reports each on standard error as
`NAME: nothing (why)` or `NAME: GOT what`. It serves nobody. tests/golden/cheats.sh runs it in its jail, where each line says
nothing, and outside, where each says GOT. FOLDER, which the test fills in, is more than a policy would know."""

import ctypes
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys

from xpusim import Policy

FOLDER = "@FOLDER@"
PARENT = os.getppid()
libc = ctypes.CDLL(None, use_errno=True)


class Nothing(Exception):
    """What a cheat found is worth nothing."""


def call(name, *args):
    """A function of the C library, whose failure is an exception."""
    rc = getattr(libc, name)(*args)
    if rc < 0:
        raise OSError(ctypes.get_errno(), name)
    return rc


def read(path):
    with open(path, "rb") as f:
        return f.read(4096) or Nothing("empty")


def command_line(policy):
    return read("/proc/%d/cmdline" % PARENT)


def trace_again(policy):
    words = command_line(policy).split(b"\0")
    seed = words[words.index(b"--seed") + 1]
    return subprocess.run(["/proc/%d/exe" % PARENT, "trace", "gen", "--workload", "mixed:duration_s=60", "--seed", seed],
                          check=True, capture_output=True).stdout


def environment(policy):
    return os.environ["XPUSIM_TEST_SECRET"]


def parent_environment(policy):
    return read("/proc/%d/environ" % PARENT)


def parent_memory(policy):
    return open("/proc/%d/mem" % PARENT, "rb")


def parent_maps(policy):
    return read("/proc/%d/maps" % PARENT)


def parent_files(policy):
    return os.listdir("/proc/%d/fd" % PARENT)


def process_list(policy):
    return [p for p in os.listdir("/proc") if p.isdigit() and p != str(os.getpid())][0]


def process_vm_readv(policy):
    """A page of this process's libraries lies elsewhere in the parent: EFAULT is the kernel's word that it may look."""
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("PN", ctypes.addressof(buffer), 8)
    remote = struct.pack("PN", 4096, 8)
    rc = libc.process_vm_readv(PARENT, local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0))
    if rc < 0 and ctypes.get_errno() != 14:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
    return "the right to read"


def ptrace(policy):
    call("ptrace", 0x4206, PARENT, 0, 0)  # PTRACE_SEIZE: does not stop it
    return "the parent, seized"


def descriptors_of_parent(policy):
    fd = call("syscall", 434, PARENT, 0)  # pidfd_open
    return call("syscall", 438, fd, 2, 0)  # pidfd_getfd


def signals(policy):
    os.kill(PARENT, 0)
    return "the right to stop the parent"


def group_signals(policy):
    os.kill(0, 0)
    return "the right to signal a group"


def slow_parent(policy):
    os.setpriority(os.PRIO_PROCESS, PARENT, os.getpriority(os.PRIO_PROCESS, PARENT))
    return "the parent's priority"


def limits_of_parent(policy):
    return resource.prlimit(PARENT, resource.RLIMIT_CPU)


def network(policy):
    return socket.socket()


def abstract_socket(policy):
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0xpusim-cheat-%d" % os.getpid())
    return s


def fork(policy):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a second process"


def debugger(policy):
    return subprocess.run(["/bin/sh", "-c", "cat /proc/%d/status" % PARENT], check=True, capture_output=True).stdout


def shared_memory(policy):
    return call("shmget", 0, 4096, 0o1600)


def shared_file(policy):
    fd = os.open("/dev/shm/xpusim-cheat-%d" % os.getpid(), os.O_CREAT | os.O_RDWR)
    os.unlink("/dev/shm/xpusim-cheat-%d" % os.getpid())
    return fd


def semaphores(policy):
    number = call("semget", 0, 1, 0o1600)
    call("semctl", number, 0, 0)
    return number


def folder(policy):
    return os.listdir(FOLDER)


def trace_file(policy):
    return read(FOLDER + "/trace.csv")


def results(policy):
    return read(FOLDER + "/earlier.csv")


def write_results(policy):
    with open(FOLDER + "/earlier.csv", "r+b") as f:
        return f.write(b"#")


def leave_a_note(policy):
    with open(FOLDER + "/note-%d" % os.getpid(), "w") as f:
        return f.write("for the next run")


def note_in_tmp(policy):
    with open("/tmp/xpusim-cheat-%d" % os.getpid(), "w") as f:
        os.unlink(f.name)
        return f.name


def remove_results(policy):
    os.rename(FOLDER + "/earlier.csv", FOLDER + "/earlier.csv")
    return "the name of a result"


def modes(policy):
    os.chmod(FOLDER + "/earlier.csv", 0o644)
    return "the mode of a result"


def times(policy):
    os.utime(FOLDER + "/earlier.csv")
    return "the times of a result"


def attributes(policy):
    os.setxattr(FOLDER + "/earlier.csv", "user.note", b"for the next run")
    return "a note at a result"


def watch(policy):
    return call("inotify_init1", 0)


def import_path(policy):
    sys.path.append(FOLDER + "/folder")
    import answers
    return answers.LENGTHS


def the_package(policy):
    import xpusim
    return open(xpusim.__file__, "ab")


def compiled_package(policy):
    import xpusim
    where = os.path.join(os.path.dirname(xpusim.__file__), "cheat-%d" % os.getpid())
    with open(where, "w") as f:
        os.unlink(where)
        return f.name


def seed(policy):
    if policy.seed != 5:
        raise Nothing(policy.seed)
    return policy.seed


def inherited(policy):
    for fd in range(3, 256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        return fd
    raise Nothing("no descriptor")


def memory(policy):
    return mmap.mmap(-1, 6 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE


def open_files(policy):
    kept = [os.dup(2) for _ in range(300)]
    for fd in kept:
        os.close(fd)
    return "300 descriptors"


def keyring(policy):
    return call("syscall", 248, b"user", b"xpusim-cheat", b"x", 1, -2)  # add_key to the process's keyring


def performance_counters(policy):
    attr = struct.pack("IIQQQQQ", 1, 112, 1, 0, 0, 0, 0x60).ljust(112, b"\0")  # software clock, user space only
    return call("syscall", 298, attr, PARENT, -1, -1, 0)


def accounts(policy):
    return read("/etc/passwd")


def home(policy):
    return os.listdir(os.path.expanduser("~"))


def host_name(policy):
    return read("/etc/hostname")


def oracle(policy):
    answer = policy._wire.ask([["oracle", 0]])[0]
    if not isinstance(answer, int):
        raise Nothing(answer)
    return answer


CHEATS = (command_line, trace_again, environment, parent_environment, parent_memory, parent_maps, parent_files, process_list,
          process_vm_readv, ptrace, descriptors_of_parent, signals, group_signals, slow_parent, limits_of_parent, network,
          abstract_socket, fork, debugger, shared_memory, shared_file, semaphores, folder, trace_file, results, write_results,
          leave_a_note, note_in_tmp, remove_results, modes, times, attributes, watch, import_path, the_package,
          compiled_package, inherited, memory, open_files, keyring, performance_counters, accounts, home, host_name)
ALWAYS = (seed, oracle)  # refused by the contract, with and without a jail


class Cheat(Policy):
    """Looks around and serves nobody."""

    def init(self):
        self.tried = False

    def request_arrived(self, r):
        if self.tried:
            return
        self.tried = True
        for cheat in CHEATS + ALWAYS:
            try:
                got = cheat(self)
                if isinstance(got, Nothing):
                    raise got
                said = "GOT %s" % str(got)[:60]
            except Exception as e:  # pylint: disable=broad-except
                said = "nothing (%s: %s)" % (type(e).__name__, str(e)[:60])
            print("%s: %s" % (cheat.__name__, said.encode("ascii", "replace").decode()), file=sys.stderr)
        raise SystemExit("looked around")

    def schedule(self):
        pass
