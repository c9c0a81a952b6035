"""The picture of the demo's page for docs/live-page.md: two policies on one axis, one request chosen. `make gallery` runs it.

    python3 tests/helpers/gallery.py CHROMIUM PAGE.html OUT.webp
"""
import base64
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser  # noqa: E402

program, page, out = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder, Browser(program, folder) as b:
    b.open(page + "#a=0&b=2&from=240&to=340&sel=30", width=1100, ready="document.getElementById('app') && document.getElementById('app').dataset.ready")
    box = b.js("(() => { const top = document.querySelector('#app .bar').getBoundingClientRect().top + scrollY, end = Array.from(document.querySelectorAll('canvas.time')).pop();"
               " return [top, end.getBoundingClientRect().bottom + scrollY]; })()")
    clip = {"x": 0, "y": box[0] - 8, "width": 1100, "height": box[1] - box[0] + 16, "scale": 1}
    data = b.call("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=True, clip=clip)["data"]
Path(out).write_bytes(base64.b64decode(data))
