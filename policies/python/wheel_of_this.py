"""Builds the wheel of this folder with the standard library alone (PEP 517), so that `pip install` needs neither a
network nor the right to write here: pip's usual backend is fetched, and leaves files beside what it builds."""

import base64
import hashlib
import os
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
INFO = "xpusim-0.1.0.dist-info"
METADATA = """Metadata-Version: 2.1
Name: xpusim
Version: 0.1.0
Summary: Scheduling policies for xpusim in Python, and readers of its results
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: xpusim\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, "xpusim"))):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(HERE, "xpusim", name), "rb") as f:
                files["xpusim/" + name] = f.read()
    files[INFO + "/METADATA"] = METADATA.encode()
    files[INFO + "/WHEEL"] = WHEEL.encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[INFO + "/RECORD"] = (record + INFO + "/RECORD,,\n").encode()
    wheel = "xpusim-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(zipfile.ZipInfo(name), data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("the source is xpusim's repository; this folder builds wheels only")
