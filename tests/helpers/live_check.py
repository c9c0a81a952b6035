"""Opens the live page in Chromium and uses it as a person does: zoom, press, keys, filter, two policies, address. Every number
is compared with what the commands print.

    python3 tests/helpers/live_check.py CHROMIUM XPUSIM FOLDER    # FOLDER: live.html, c.json, load.json, as live.sh makes them
"""
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser  # noqa: E402

PROGRAM, XPUSIM, DIR = sys.argv[1:4]
PAGE, READY = f"{DIR}/live.html", "document.getElementById('app') && document.getElementById('app').dataset.ready"
POLICIES = ["openvino-cb", "fcfs", "agent-xpu-v2"]
WORK = (Path(DIR) / "work").read_text().split()
bad = 0


def check(what, ok, seen=""):
    global bad
    if not ok:
        bad = 1
        print(f"FAILED: {what}: {str(seen)[:600]}")


def command(*words):
    run = subprocess.run([XPUSIM, *words, *WORK, "--json"], capture_output=True, text=True)
    return json.loads(run.stdout)


def near(a, b):
    return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def cells(b, selector):
    """Rows of a table: per cell its number, or its text."""
    return b.js("Array.from(document.querySelectorAll(%s)).map(r => Array.from(r.cells).map(c => c.dataset.value !== undefined ? Number(c.dataset.value) : c.textContent))" % json.dumps(selector))


def settle(b):
    b.js("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")


def address(b):
    return dict(x.split("=") for x in b.js("location.hash").lstrip("#").split("&") if "=" in x)


def show(b, fragment):
    """Another address of the page that is open: it is not loaded again."""
    b.js("location.hash = " + json.dumps(fragment))
    settle(b)


def explained(b):
    """A chosen request: its causes and blockers, in both runs, as `explain` has them."""
    b.open(PAGE + "#a=0&b=2&sel=9", ready=READY)
    for policy in (POLICIES[0], POLICIES[2]):
        want = command("explain", "--request", "9", "--policy", policy)
        box = f".request[data-run='{policy}']"
        seen = b.js(f"Object.fromEntries(Array.from(document.querySelectorAll(\"{box} .cause-ns\")).map(c => [c.dataset.cause, Number(c.dataset.value)]))")
        check(f"causes of request 9 under {policy}", seen == {k: v for k, v in want["causes_ns"].items() if v}, (seen, want["causes_ns"]))
        rows = cells(b, f"{box} details tbody tr")
        first = want["blockers"][0]
        check(f"blockers under {policy}", len(rows) == min(12, len(want["blockers"])) and rows[0][0] == f"request {first['request_id']}" and
              rows[0][2:] == [first["shared_ns"], first["queue_ns"], first["tail_ns"]], (rows[0], first))


def differing(b):
    want = command("diff", "--policy", POLICIES[0], "--b-policy", POLICIES[2])
    text = b.js("document.getElementById('app').textContent")
    check("the first decision that differs", f"Decision {want['decision']}, at" in text and " ".join(want["a"].split()[2:]) in text and " ".join(want["b"].split()[2:]) in text, want)
    show(b, "a=2&b=0")  # the other way round
    text = b.js("document.getElementById('app').textContent")
    check("sides of a difference", text.index(" ".join(want["b"].split()[2:])) < text.index(" ".join(want["a"].split()[2:])))


def distributions(b):
    show(b, "cls=reactive&m=ttft&q=95")
    for row, policy in zip(cells(b, ".quantiles tbody tr"), POLICIES):
        m = command("run", "--policy", policy)["metrics"]
        want = [m[f"reactive.ttft_s.{p}"] for p in ("n", "p50", "p90", "p99", "p95")]
        check(f"quantiles of {policy}", near(float(row[2]), want[0]) and all(near(x, y) for x, y in zip(row[3:], want[1:])), (row, want))
        check(f"status of {policy}", row[1] in ("STABLE", "UNDECIDED", "OVERLOADED", "BATTERY_EMPTY"), row)


def means(b):
    tree = json.loads(Path(DIR, "c.json").read_text())
    show(b, "find=p9")
    rows = cells(b, ".metrics tbody tr")
    names = b.js("Array.from(document.querySelectorAll('.metrics tbody tr b')).map(x => x.textContent)")
    check("a search finds metrics", len(rows) > 20 and all("p9" in n for n in names), names[:5])
    for name, row in zip(names, rows):
        for value, policy in zip(row[1:], tree["policies"]):
            want = tree["policies"][policy][name]["mean"]
            check(f"{name} of {policy}", (want is None and math.isnan(value if value is not None else math.nan)) or value == want, (value, want))
    show(b, "find=reactive.ttft_s")
    words = b.js("Array.from(document.querySelectorAll('.metrics tbody tr td:first-child')).map(x => [x.querySelector('b').textContent, x.querySelector('small').textContent])")
    for name, said in ("mean", "time to first token, s; lower is better"), ("n", "time to first token, number of values"):
        check(f"words of ttft_s.{name}", [f"reactive.ttft_s.{name}", said] in words, words)
    loads = json.loads(Path(DIR, "load.json").read_text())["loads"]
    for load in loads:
        show(b, f"load={load['load']}&lm=proactive.e2e_s.mean")
        for row, policy in zip(cells(b, ".loads tbody tr"), load["policies"]):
            check(f"load {load['load']}, {policy}", row[1] == load["policies"][policy]["proactive.e2e_s.mean"]["mean"] and row[3].startswith(f"{load['verdicts'][policy]['overloaded']} of"), row)


def moved(b):
    """Wheel, drag, keys and a press on a launch change what is chosen, and so the address."""
    b.open(PAGE + "#a=0&b=2&from=8&to=10", ready=READY)
    box = b.js("JSON.parse(JSON.stringify(document.querySelector('canvas.time').getBoundingClientRect()))")
    left, width = box["left"] + 58, box["width"] - 58
    lane = box["top"] + 12 + 74 + 32 + 13  # the second device, the iGPU
    x = left + width * 0.14  # 8.28 s: request 0 came at 8.27 s, to an empty machine
    b.click(x, lane)
    settle(b)
    check("a press on a launch chooses its request", address(b).get("sel") == "0", address(b))
    b.mouse("mouseWheel", x, lane, deltaX=0, deltaY=-400)
    settle(b)
    a = address(b)
    about = 8 + 2 * 0.14
    check("the wheel zooms about the pointer", near(round(float(a["to"]) - float(a["from"]), 4), round(2 / math.e, 4)) and
          abs((about - float(a["from"])) / (float(a["to"]) - float(a["from"])) - 0.14) < 0.002, a)
    b.mouse("mousePressed", left + 400, lane, button="left", clickCount=1)
    b.mouse("mouseMoved", left + 300, lane, button="left")
    b.mouse("mouseReleased", left + 300, lane, button="left", clickCount=1)
    settle(b)
    check("dragging left shows what is later", float(address(b)["from"]) > float(a["from"]) and address(b)["sel"] == "0", address(b))
    b.js("document.querySelector('canvas.time').focus()")
    for key, after in (("0", lambda a: "from" not in a), ("n", lambda a: a["sel"] == "1"), ("+", lambda a: float(a["to"]) < 1000), ("Escape", lambda a: "sel" not in a)):
        b.key(key)
        settle(b)
        check(f"key {key}", after(address(b)), address(b))
    b.js("(() => { const s = document.querySelectorAll('#app select')[3]; s.value = 'proactive'; s.dispatchEvent(new Event('change')); })()")
    settle(b)
    kinds = set(b.js("Array.from(document.querySelectorAll('.requests tbody tr')).map(r => r.cells[1].textContent)"))
    check("a filter of class", address(b).get("cls") == "proactive" and kinds == {"proactive"}, kinds)
    b.js("Array.from(document.querySelectorAll('.requests th button')).find(x => x.textContent.startsWith('last token')).click()")
    settle(b)
    last = [r[7] for r in cells(b, ".requests tbody tr")][:50]
    check("a heading sorts", last == sorted(last) and len(last) > 5, last)
    b.js("location.hash = 'a=1&b=-1&sel=3'")
    settle(b)
    check("another address shows another view", b.js("Array.from(document.querySelectorAll('canvas.time')).filter(c => c.clientHeight > 0).length") == 1 and
          "Request 3" in b.js("document.getElementById('app').textContent"))


def kernels(b):
    """Kernels of a window: recorded where they begin in it, and named under the pointer."""
    b.open(f"{DIR}/kernels.html#a=0&b=-1&from=8.27&to=8.37", ready=READY)
    inside = b.js("Array.from(live.runs()[0].kernels.begin_ns).every(t => t >= 8.27e9 && t < 8.37e9)")
    check("kernels of the window", inside and b.js("live.runs()[0].kernels.n") > 5)
    box = b.js("JSON.parse(JSON.stringify(document.querySelector('canvas.time').getBoundingClientRect()))")
    at = b.js("(live.runs()[0].kernels.begin_ns[3] + live.runs()[0].kernels.end_ns[3]) / 2e9")
    b.mouse("mouseMoved", box["left"] + 58 + (at - 8.27) / 0.1 * (box["width"] - 58), box["top"] + 12 + 74 + 32 + 13)
    settle(b)
    isolated = b.js("(live.runs()[0].kernels.isolated_ns[3] / 1e6).toFixed(3)")
    said = b.js("document.querySelector('.say').textContent")
    check("the kernel under the pointer", "Kernel: " in said and f"isolated {isolated} ms" in said, said)


def agents(b):
    """A workload of jobs on two models: filters for both, no request that has not arrived counted as left behind."""
    b.open(f"{DIR}/agents.html", ready=READY)
    text = b.js("document.getElementById('app').textContent")
    audit = b.js("live.runs().map(r => [r.result.audit.running + r.result.audit.queued, r.schedule.unfinished, r.result.audit.finished + r.result.audit.shed, r.requests.n])")
    check("requests that are left behind", all(a[0] == a[1] and a[2] == a[3] for a in audit) and "had not left" not in text, audit)
    names = b.js("Array.from(document.querySelectorAll('#app .bar label')).map(l => l.firstChild.textContent)")
    check("filters of jobs and models", "job" in names and "model" in names, names)
    b.open(f"{DIR}/agents.html#model=1&by=model", ready=READY)
    shown = b.js("document.querySelectorAll('.requests tbody tr').length")
    want = b.js("Array.from(live.runs()[0].requests.model).filter(m => m === 1).length")
    check("requests of one model", 0 < want == shown, (shown, want))


def outside(b):
    """What is outside the calibrated range is hatched: launches add up to the run's share, and the row says it."""
    b.open(f"{DIR}/far.html#from=100&to=700", ready=READY)
    shares = b.js("""live.runs().map(r => r.schedule.devices.map((d, i) => {
        const l = r.launches; let all = 0, out = 0;
        for (let k = 0; k < l.n; k++) { if (l.device[k] === i) { all += l.busy_ns[k]; out += l.busy_ns[k] * l.outside_thousandths[k] / 1000; } }
        return [all > 0 ? out / all : null, r.result.metrics[d + '.extrapolated_frac']]; }))""")
    seen = [pair for run in shares for pair in run if pair[0] is not None]
    # the run counts isolated time, the page busy time
    check("shares outside the range", len(seen) >= 3 and max(a for a, _ in seen) > 0.9 and all(abs(a - m) < 0.02 for a, m in seen), shares)
    said = b.js("Array.from(document.querySelectorAll('.outside')).map(e => e.textContent)")
    check("the share is said for each run", len(said) == 2 and all("igpu 9" in t or "igpu 100" in t for t in said), said)
    # a row of the lane's pixels has the ground in it where there is work: stripes
    stripes = """(() => { const c = document.querySelectorAll('canvas.time')[0].getContext('2d'), d = c.getImageData(58, 125, 900, 1).data; let n = 0;
        for (let i = 4; i < d.length; i += 4) { n += Math.abs(d[i] - d[i - 4]) > 60; } return n; })()"""
    far = b.js(stripes)
    b.open(PAGE + "#a=0&b=2&from=230&to=330", ready=READY)
    check("hatching is drawn, and only there", far > 100 and b.js("document.querySelectorAll('.outside').length") == 0, far)


def recomputed(b):
    """A load that the reader chooses is computed in the page: the numbers of the command that it names."""
    page = Path(DIR, "recompute.html")
    if not page.exists():
        return
    # p90 of TTFT is none of the eight metrics that compare corrects together
    b.open(f"{page}#lm=reactive.ttft_s.p90&rn=8", ready=READY)
    b.until("document.querySelector('.recompute canvas').dataset.made === '1'", 200)
    for load in ("0.6", "1.05"):
        b.js("(() => { const s = document.querySelector('.recompute input[type=range]'); s.value = %s; s.dispatchEvent(new Event('input')); })()" % load)
        b.until("(document.querySelector('.recomputed th') || {}).textContent === 'policy at load %s'" % load, 200)
        want = command("compare", "--policy", "fcfs", "--policy", "agent-xpu-v2", "--load", load, "--replications", "8")["loads"][0]
        for row, policy in zip(cells(b, ".recomputed tbody tr"), ("fcfs", "agent-xpu-v2")):
            m = want["policies"][policy]["reactive.ttft_s.p90"]
            check(f"computed at load {load}: {policy}", near(row[1], m["mean"]) and row[4].startswith(f"{want['verdicts'][policy]['overloaded']} of") and row[3] == m.get("verdict", "").replace("(significant)", "(not corrected for the number of metrics)"), (row, m))
    check("the address keeps the load", address(b).get("rl") == "1.05" and address(b).get("rn") == "8", address(b))
    told = b.js("document.querySelector('.recompute .say').textContent")
    check("the command is said", "--load 1.05 --replications 8" in told and "16 runs" in told, told)
    outside = [e["params"]["request"]["url"] for e in b.events if e["method"] == "Network.requestWillBeSent"]
    check("requests of the page that computes", all(u.startswith(("file:", "data:", "blob:", "about:")) for u in outside), outside)
    say = "((document.querySelector('.recompute .say') || {}).textContent || '')"
    b.open(f"{DIR}/machine.html#rl=0.7&rn=2", ready=READY)
    b.until(say + ".includes('--machine')", 200)
    b.open(f"{DIR}/closed.html#rl=0.7&rn=2", ready=READY)
    b.until(say + ".includes('status 1')", 200)
    settle(b)
    check("a refusal stays, and is not tried again", "closed loop" in b.js(say), b.js(say))


def laid_out(b):
    for width in (390, 800, 1400) if os.environ.get("WHOLE") else (390, 1400):
        b.open(PAGE + "#a=0&b=2&sel=9", width=width, ready=READY)
        wider = b.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(f"{width} pixels: nothing is wider than the page", wider <= 0, wider)
    b.open(f"{DIR}/names.html", width=1400, ready=READY)
    wider = b.js("(() => { const t = document.querySelector('.requests table'); return t.clientWidth - t.parentElement.clientWidth; })()")
    check("policies with parameters: the table of requests is within the page", wider <= 0, wider)
    b.open(PAGE + "#a=0&b=2&sel=9", width=1400, ready=READY)
    labels = b.js("Array.from(document.querySelectorAll('canvas')).filter(c => c.clientHeight > 0).map(c => c.getAttribute('aria-label'))")
    check("every canvas has a text", len(labels) >= 4 and all(labels), labels)
    check("every control has a name", b.js("Array.from(document.querySelectorAll('#app input, #app select')).every(c => c.labels.length > 0 || c.getAttribute('aria-label'))"))
    outside = [e["params"]["request"]["url"] for e in b.events if e["method"] == "Network.requestWillBeSent"]
    check("requests", all(u.startswith(("file:", "data:", "blob:", "about:")) for u in outside), outside)
    told = [e["params"] for e in b.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")]
    check("the console", not told, told)


def enlarged(b):
    """On a phone a figure is whole; a press shows it at its own width in a box that scrolls, without JavaScript."""
    if not Path(DIR, "figures.html").exists():
        return
    b.open_without_scripts(f"{DIR}/figures.html", width=390)
    widths = "(() => { const i = document.querySelector('img'), h = document.documentElement; return [i.clientWidth, i.width, Number(i.getAttribute('width')), h.scrollWidth - h.clientWidth]; })()"
    small = b.js(widths)
    box = b.js("(() => { const i = document.querySelector('img'); i.scrollIntoView(); const r = i.getBoundingClientRect(); return [r.x + 50, r.y + 50]; })()")
    b.click(*box)
    settle(b)
    large = b.js(widths)
    check("a figure on a phone, pressed", small[0] <= 390 and large[0] == large[2] > 700 and small[3] <= 0 and large[3] <= 0, (small, large))
    equal = b.js("Array.from(document.querySelectorAll('img')).map(i => Number(i.getAttribute('width')) - Number(decodeURIComponent(i.src).match(/viewBox='0 0 (\\d+)/)[1]))")
    check("figures have their own width, so that letters are equal", len(equal) >= 3 and not any(equal), equal)


def without_script(b):
    b.open_without_scripts(PAGE)
    check("without JavaScript the numbers are open", b.js("document.querySelector('details.static').open && document.querySelectorAll('details.static tbody tr').length === 3"))


def main():
    text = Path(PAGE).read_text()
    check("no address of a network", not re.search(r"https?://", re.sub(r">[A-Za-z0-9+/=]{100,}<", "><", text)))
    check("a policy against loading anything", "default-src 'none'" in text)
    with Browser(PROGRAM, DIR) as b:
        b.open(PAGE, ready=READY)
        print(f"note: {len(text)} bytes, ready after {b.js('document.getElementById(`app`).dataset.ready')} ms")
        for part in (explained, differing, distributions, means, moved, kernels, agents, outside, recomputed, laid_out, enlarged, without_script):
            part(b)
    sys.exit(bad)


main()
