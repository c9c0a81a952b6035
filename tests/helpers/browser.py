"""A headless Chromium, driven over a pipe by the DevTools protocol: only the standard library.

    with Browser("chromium", folder) as b:
        b.open("/tmp/page.html#a=1", width=390, height=800)
        b.js("document.title")
"""
import base64
import json
import os
import subprocess
import time


class Browser:
    def __init__(self, program, folder):
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        shell = f'exec "$@" 3<&{down_read} 4>&{up_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "browser", program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={folder}/profile", "about:blank"],
            pass_fds=(down_read, up_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        self.rest, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.up, 1 << 20)
            if not more:
                raise SystemExit("the browser has ended")
            self.rest += more
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        """The result of a command; events that come before it are kept."""
        self.number += 1
        ask = {"id": self.number, "method": method, "params": params}
        if self.session:
            ask["sessionId"] = self.session
        os.write(self.down, json.dumps(ask).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.number:
                if "error" in m:
                    raise SystemExit(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def js(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise SystemExit(f"{text}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def until(self, text, seconds=60):
        end = time.time() + seconds
        while not self.js(text):
            if time.time() > end:
                raise SystemExit(f"never true: {text}")
            time.sleep(0.02)

    def open(self, address, width=1400, height=900, ready="document.readyState === 'complete'"):
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url="file://" + os.path.abspath(address.split("#")[0]) + "".join("#" + x for x in address.split("#")[1:]))
        self.until(ready)

    def open_without_scripts(self, address, width=1400):
        """Scripts can be evaluated again when the page is whole, and its own have not run."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        loader = self.call("Page.navigate", url="file://" + os.path.abspath(address))["loaderId"]
        whole = {"name": "load", "loaderId": loader}
        while not any(e["method"] == "Page.lifecycleEvent" and whole.items() <= e["params"].items() for e in self.events):
            self.events.append(self.message())
        self.call("Emulation.setScriptExecutionDisabled", value=False)

    def media(self, scheme="light", media=""):
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))
