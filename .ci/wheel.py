"""Packs a wheel of an installed prefix: python3 .ci/wheel.py PREFIX OUT. The program and its data go where `make install`
puts them, so pip makes a prefix of the environment."""

import os
import platform
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "policies", "python"))
import wheel_of_this  # noqa: E402

LICENCE = "GPL-3.0-or-later for the program, which links GSL; its sources are Apache-2.0"


def newest_glibc(paths):
    """The newest version of a symbol that the files need: what a machine must have (PEP 600)."""
    found = set()
    for path in paths:
        text = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
        found |= {tuple(map(int, v.split("."))) for v in re.findall(r"\(?GLIBC_(\d+\.\d+)", text)}
    return max(found)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def main(prefix, out):
    data = "xpusim-%s.data" % wheel_of_this.VERSION
    files = wheel_of_this.package()
    libraries = []
    for folder, _, names in os.walk(prefix):
        for name in sorted(names):
            path = os.path.join(folder, name)
            place = os.path.relpath(path, prefix)
            if place.startswith("lib" + os.sep):
                libraries.append(path)
            files["%s/data/%s" % (data, place)] = read(path)
    program = "%s/scripts/xpusim" % data
    files[program] = files.pop("%s/data/bin/xpusim" % data)
    for source, name in (("LICENSE", "LICENSE"), ("debian/copyright", "COPYRIGHT")):
        files["%s/licenses/%s" % (wheel_of_this.INFO, name)] = read(os.path.join(TOP, source))
    gpl = "/usr/share/common-licenses/GPL-3"
    if os.path.exists(gpl):
        files["%s/licenses/GPL-3" % wheel_of_this.INFO] = read(gpl)
    tag = "py3-none-manylinux_%d_%d_%s" % (*newest_glibc([os.path.join(prefix, "bin", "xpusim"), *libraries]), platform.machine())
    print(wheel_of_this.pack(out, dict(sorted(files.items())), tag,
                             "Simulator of LLM schedulers on NPU, iGPU and CPU, with its policies and readers for Python",
                             LICENCE, (program,)))


main(*sys.argv[1:])
