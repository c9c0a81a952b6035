"""Builds the wheel of this folder with the standard library alone (PEP 517), so that `pip install` needs neither a
network nor the right to write here: pip's usual backend is fetched, and leaves files beside what it builds.

`make wheel` uses `pack` for a wheel that has the program and its data as well."""

import base64
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as project:
    VERSION = re.search(r'^version = "(.*)"$', project.read(), re.M).group(1)
INFO = "xpusim-%s.dist-info" % VERSION
METADATA = """Metadata-Version: 2.1
Name: xpusim
Version: %s
Summary: %s
License: %s
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
"""


def package():
    """The files of the Python package, by their names in a wheel."""
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, "xpusim"))):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(HERE, "xpusim", name), "rb") as f:
                files["xpusim/" + name] = f.read()
    return files


def pack(wheel_directory, files, tag, summary, licence, programs=()):
    """Writes the wheel of the files, those named in programs to be executed. Returns its name."""
    pure = "true" if tag.endswith("-any") else "false"
    files = dict(files)
    files[INFO + "/METADATA"] = (METADATA % (VERSION, summary, licence)).encode()
    files[INFO + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: xpusim\nRoot-Is-Purelib: %s\nTag: %s\n" % (pure, tag)).encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[INFO + "/RECORD"] = (record + INFO + "/RECORD,,\n").encode()
    wheel = "xpusim-%s-%s.whl" % (VERSION, tag)
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if name in programs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return pack(wheel_directory, package(), "py3-none-any",
                "Scheduling policies for xpusim in Python, and readers of its results", "Apache-2.0")


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("the source is xpusim's repository; this folder builds wheels only")
