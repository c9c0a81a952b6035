#!/bin/sh
# xpusim mcp gets hand-written lines, malformed ones among them, and the official Python client. A
# tool's answer must be the output of its command.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }

# Each line comes with the text that its answer must hold. "-" means none, since a notification gets
# no answer.
cat >"$dir/lines" <<'END'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}	a["id"] == 1 and a["result"]["protocolVersion"] == "2025-06-18" and "tools" in a["result"]["capabilities"]
{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}	a["result"]["protocolVersion"] == "2025-11-25"
{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}	a["id"] == 3 and a["error"]["code"] == -32602
{"jsonrpc":"2.0","method":"notifications/initialized"}	-
{"jsonrpc":"2.0","id":"four","method":"ping"}	a == {"jsonrpc": "2.0", "id": "four", "result": {}}
{"jsonrpc":"2.0","id":5,"method":"tools/list"}	[t["name"] for t in a["result"]["tools"]] == ["list", "run", "compare", "explain", "falsify", "judge"]
{"jsonrpc":"2.0","id":6,"method":"resources/list"}	a["error"]["code"] == -32601
{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"rm","arguments":{}}}	a["error"]["code"] == -32602
{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"run","arguments":[]}}	a["error"]["code"] == -32602
{"jsonrpc":"2.0","id":9,"method":"tools/call"}	a["error"]["code"] == -32602
{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"run","arguments":{"policy":"no-such"}}}	a["result"]["isError"] is True and "no policy is called" in a["result"]["content"][0]["text"]
{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"run","arguments":{"polizy":"edf"}}}	a["result"]["isError"] is True and "--policy" in a["result"]["content"][0]["text"]
{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"run","arguments":{"policy":{"a":1}}}}	a["result"]["isError"] is True and "policy" in a["result"]["content"][0]["text"]
{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"run","arguments":{"x --y":"1"}}}	a["result"]["isError"] is True
{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"list","arguments":{"operands":["--version"]}}}	a["result"]["isError"] is True
{"jsonrpc":"1.0","id":15,"method":"ping"}	a["id"] == 15 and a["error"]["code"] == -32600
{"jsonrpc":"2.0","id":null,"method":"ping"}	a["id"] is None and a["error"]["code"] == -32600
{"jsonrpc":"2.0","id":16}	a["id"] == 16 and a["error"]["code"] == -32600
{"jsonrpc":"2.0","id":17,"result":{}}	-
[{"jsonrpc":"2.0","id":18,"method":"ping"}]	a["error"]["code"] == -32600
{"jsonrpc":"2.0","id":19,"method":"ping"} {}	a["id"] is None and a["error"]["code"] == -32700
{"jsonrpc":"2.0",	a["error"]["code"] == -32700
"ping"	a["error"]["code"] == -32600
{"jsonrpc":"2.0","id":20,"method":"ping"}	a["id"] == 20
END
cat >"$dir/lines.py" <<'END'
import json, subprocess, sys
rows = [line.rstrip("\n").rsplit("\t", 1) for line in open(sys.argv[2])]
# one of a million brackets, and one that is no UTF-8
rows += [["[" * 1000000, 'a["error"]["code"] == -32700']]
text = "".join(line + "\n" for line, _ in rows).encode() + b'\xff\xfe\n\n' + b'{"jsonrpc":"2.0","id":99,"method":"ping"}'
out = subprocess.run([sys.argv[1], "mcp"], input=text, capture_output=True)
answers = [json.loads(line) for line in out.stdout.splitlines()]
bad = out.returncode != 0 or out.stderr != b""
if bad:
    print("FAILED: exit", out.returncode, out.stderr[:200])
wanted = [row for row in rows if row[1] != "-"] + [["not UTF-8", 'a["error"]["code"] == -32700'], ["the last", 'a["id"] == 99']]
if len(answers) != len(wanted):
    bad = print("FAILED: %d answers to %d lines" % (len(answers), len(wanted))) or True
for (line, want), a in zip(wanted, answers):
    if not eval(want):
        bad = print("FAILED: %.80s: %.300s" % (line, a)) or True
sys.exit(bad)
END
python3 "$dir/lines.py" "$x" "$dir/lines" || bad=1

# Each tool answers with the output of its command. An argument may be a number, a list or true.
load='mixed:reactive_per_min=4,proactive_per_min=4,duration_s=40'
cat >"$dir/calls.py" <<'END'
import json, subprocess, sys
x, load = sys.argv[1:]
calls = [("list", {"operands": ["policy", "edf"]}, ["list", "policy", "edf"]),
         ("run", {"policy": "edf", "workload": load, "seed": 18446744073709551557 // 4096}, None),
         ("compare", {"policy": ["edf", "fcfs"], "workload": load, "replications": 2}, None),
         ("explain", {"policy": "edf", "workload": load, "request": 0}, None),
         ("falsify", {"policy": "edf", "baseline": "fcfs", "workload": load, "budget": 8}, None),
         ("judge", {"operands": ["edf"], "replications": 2, "words": True},
          ["arena", "judge", "--words", "--replications", "2", "edf"])]
lines, wanted = [], []
for i, (tool, arguments, words) in enumerate(calls):
    if words is None:
        words = [tool]
        for k, v in arguments.items():
            for one in v if isinstance(v, list) else [v]:
                words += ["--" + k, str(one)]
    wanted.append(subprocess.run([x, *words, "--json", "--quiet"], capture_output=True, text=True))
    lines.append(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}))
out = subprocess.run([x, "mcp"], input="\n".join(lines) + "\n", capture_output=True, text=True)
answers = [json.loads(line)["result"] for line in out.stdout.splitlines()]
bad = len(answers) != len(calls)
for (tool, arguments, _), a, want in zip(calls, answers, wanted):
    if want.returncode != 0 or a["isError"] or a["content"][0]["text"] != want.stdout or a["structuredContent"] != json.loads(want.stdout):
        bad = print("FAILED: %s %s: %.300s, wanted %.300s" % (tool, arguments, a["content"], want.stderr or want.stdout)) or True
sys.exit(bad)
END
python3 "$dir/calls.py" "$x" "$load" || fail "tools/call"

# The official client, where it is installed: pip install --require-hashes -r tests/mcp.txt
client=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim/mcp-2.3.0/bin/python # of .ci/setup.sh all
[ -x "$client" ] || client=python3
"$client" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("mcp") is None)' 2>/dev/null || { echo "skipped: the Python package mcp is not installed, so its client was not tried"; exit $bad; }
cat >"$dir/client.py" <<'END'
import asyncio, os, sys
import jsonschema
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(x, load):
    # By itself the client passes on six variables, but a program with a shared library needs
    # another.
    async with stdio_client(StdioServerParameters(command=x, args=["mcp"], env=dict(os.environ))) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            assert hello.server_info.name == "xpusim", hello
            tools = (await session.list_tools()).tools
            for t in tools:
                jsonschema.Draft202012Validator.check_schema(t.input_schema)
            assert {t.name for t in tools} == {"list", "run", "compare", "explain", "falsify", "judge"}, tools
            arguments = {"policy": "edf", "workload": load, "seed": 3}
            jsonschema.validate(arguments, next(t for t in tools if t.name == "run").input_schema)
            r = await session.call_tool("run", arguments)
            assert not r.is_error and r.structured_content["config"]["seed"] == 3, r
            r = await session.call_tool("run", {"policy": "nobody"})
            assert r.is_error and "no policy is called" in r.content[0].text, r

asyncio.run(main(*sys.argv[1:]))
END
"$client" "$dir/client.py" "$x" "$load" || fail "the official client"
exit $bad
