"""Writes a tiny Llama of random weights as a GGUF file, with the standard library alone.

The format is https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3."""

import array
import random
import struct

LAYERS, HIDDEN, HEADS, FFN, VOCABULARY, CONTEXT = 1, 32, 2, 32, 300, 8192
_UINT32, _INT32, _FLOAT32, _STRING, _ARRAY = 4, 5, 6, 8, 9
_ALIGNMENT = 32


def _string(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def _value(kind, v):
    return _string(v) if kind == _STRING else struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f"}[kind], v)


def _pair(key, kind, v):
    if isinstance(v, list):
        return _string(key) + struct.pack("<IIQ", _ARRAY, kind, len(v)) + b"".join(_value(kind, x) for x in v)
    return _string(key) + struct.pack("<I", kind) + _value(kind, v)


def _pairs():
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    tokens += ["\u2581w%d" % i for i in range(VOCABULARY - len(tokens))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259)  # unknown, control, byte, normal
    return [
        ("general.architecture", _STRING, "llama"), ("general.name", _STRING, "random"),
        ("llama.context_length", _UINT32, CONTEXT), ("llama.embedding_length", _UINT32, HIDDEN),
        ("llama.block_count", _UINT32, LAYERS), ("llama.feed_forward_length", _UINT32, FFN),
        ("llama.attention.head_count", _UINT32, HEADS), ("llama.attention.head_count_kv", _UINT32, HEADS),
        ("llama.attention.layer_norm_rms_epsilon", _FLOAT32, 1e-5),
        ("llama.rope.dimension_count", _UINT32, HIDDEN // HEADS), ("llama.vocab_size", _UINT32, VOCABULARY),
        ("tokenizer.ggml.model", _STRING, "llama"), ("tokenizer.ggml.tokens", _STRING, tokens),
        ("tokenizer.ggml.scores", _FLOAT32, [0.0] * VOCABULARY), ("tokenizer.ggml.token_type", _INT32, kinds),
        ("tokenizer.ggml.bos_token_id", _UINT32, 1), ("tokenizer.ggml.eos_token_id", _UINT32, 2),
        ("tokenizer.ggml.unknown_token_id", _UINT32, 0),
        ("tokenizer.chat_template", _STRING, "{% for m in messages %}{{ m['content'] }}{% endfor %}"),
    ]


def _tensors():
    yield "token_embd.weight", (HIDDEN, VOCABULARY)
    yield "output_norm.weight", (HIDDEN,)
    yield "output.weight", (HIDDEN, VOCABULARY)
    for i in range(LAYERS):
        yield "blk.%d.attn_norm.weight" % i, (HIDDEN,)
        yield "blk.%d.ffn_norm.weight" % i, (HIDDEN,)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield "blk.%d.%s.weight" % (i, name), (HIDDEN, HIDDEN)
        yield "blk.%d.ffn_gate.weight" % i, (HIDDEN, FFN)
        yield "blk.%d.ffn_up.weight" % i, (HIDDEN, FFN)
        yield "blk.%d.ffn_down.weight" % i, (FFN, HIDDEN)


def write(path):
    """Writes the file unless it is there. Rows are fastest in memory, as ggml wants them."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    pairs, infos, data = _pairs(), b"", b""
    tensors = list(_tensors())
    for name, shape in tensors:
        infos += _string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape)
        infos += struct.pack("<IQ", 0, len(data))  # 32-bit floats
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * n if len(shape) == 1 else [draw.gauss(0, 0.1) for _ in range(n)]
        data += array.array("f", values).tobytes()
        data += bytes(-len(data) % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(_pair(*p) for p in pairs) + infos
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + data)
