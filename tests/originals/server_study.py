"""Writes the files of server_study.sh into a folder: a Llama of 134 million random weights as GGUF, its shape for xpusim,
and two traces one after the other, of other rates and lengths."""

import array
import json
import pathlib
import random
import struct
import sys

import tiny_gguf

SHAPE = {"LAYERS": 12, "HIDDEN": 768, "HEADS": 12, "FFN": 2048, "VOCABULARY": 32000}
BLOCK = 1 << 20  # weights that repeat


def model(path):
    for key, value in SHAPE.items():
        setattr(tiny_gguf, key, value)
    draw = random.Random(1)
    block = struct.pack("<%de" % BLOCK, *(draw.gauss(0, 0.02) for _ in range(BLOCK)))
    infos, sizes, at = b"", [], 0
    tensors = list(tiny_gguf._tensors())
    for name, shape in tensors:
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        one = len(shape) == 1
        size = n * (4 if one else 2)
        infos += tiny_gguf._string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape)
        infos += struct.pack("<IQ", 0 if one else 1, at)  # norms in 32 bit, weights in 16
        sizes.append((one, size))
        at += size + -size % tiny_gguf._ALIGNMENT
    pairs = tiny_gguf._pairs()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(tiny_gguf._pair(*p) for p in pairs) + infos
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % tiny_gguf._ALIGNMENT))
        for one, size in sizes:
            data = array.array("f", [1.0] * (size // 4)).tobytes() if one else (block * (size // len(block) + 1))[:size]
            f.write(data + bytes(-size % tiny_gguf._ALIGNMENT))


def shape(path):
    of = json.loads(pathlib.Path("hwmodels/llm/random-256.json").read_text())
    two = {"value": 2, "unit": "B", "low": 2, "high": 2, "source": "16-bit floats", "kind": "measured"}
    of.update(name=path.stem, source="server_study.py", layers=SHAPE["LAYERS"], hidden=SHAPE["HIDDEN"], heads=SHAPE["HEADS"],
              kv_heads=SHAPE["HEADS"], head_dim=SHAPE["HIDDEN"] // SHAPE["HEADS"], ffn_hidden=SHAPE["FFN"],
              vocab=SHAPE["VOCABULARY"], weight_bits=16, body_bytes_per_weight=two, head_bytes_per_weight=two)
    path.write_text(json.dumps(of))


def traces(path):
    """Writes twelve requests of each trace: one every 6 s and then one every 4 s, with other lengths."""
    draw, at, rows = random.Random(7), 0.0, []
    for i in range(24):
        gap, prompt, output = (6, (16, 64), (8, 24)) if i < 12 else (4, (8, 96), (4, 32))
        at += draw.expovariate(1 / gap)
        rows.append(f"{i},{i},0,{'reactive' if i % 3 == 0 else 'proactive'},{at:.3f},,{draw.randint(*prompt)},{draw.randint(*output)},0")
    head = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"
    path.write_text("\n".join(["# xpusim-trace v1", head, *rows]) + "\n")


if __name__ == "__main__":
    to = pathlib.Path(sys.argv[1])
    model(to / "m.gguf")
    shape(to / "random-134m.json")
    traces(to / "t.csv")
