"""Writes a small decoder with random weights as OpenVINO IR, for schedulers that need a model to run.

It has one attention layer of width 32 over 300 tokens. Its tokens do not matter, so there is no feed-forward part.
It is stateful, with the inputs and variable names that openvino.genai looks for when it turns attention into paged
attention."""

import json
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

LAYERS, HEADS, HEAD_WIDTH, VOCABULARY = 1, 2, 16, 300
WIDTH = HEADS * HEAD_WIDTH


def _input(name, shape, kind):
    node = op.parameter(shape, kind, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def _past(name, new, beam, batch):
    """Returns the variable `name` with `new` [batch, head, token, width] appended, and its assignment."""
    info = VariableInfo()
    info.data_shape = ov.PartialShape([-1, HEADS, -1, HEAD_WIDTH])
    info.data_type = ov.Type.f32
    info.variable_id = name
    variable = Variable(info)
    none = op.concat([batch, op.constant([HEADS, 0, HEAD_WIDTH])], 0)
    empty = op.broadcast(op.constant(np.float32(0)), none)
    kept = op.gather(op.read_value(empty, variable), beam, op.constant(0))
    whole = op.concat([kept, new], 2)
    return whole, op.assign(whole, variable)


def write(folder):
    """Writes the model and its two config files, once."""
    folder = Path(folder)
    if (folder / "openvino_model.xml").exists():
        return
    draw = np.random.default_rng(1)

    def weights(rows, columns):
        return op.constant((draw.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32))

    ids = _input("input_ids", [-1, -1], np.int64)
    mask = _input("attention_mask", [-1, -1], np.int64)
    positions = _input("position_ids", [-1, -1], np.int64)
    beam = _input("beam_idx", [-1], np.int32)

    batch = op.gather(op.shape_of(ids, "i64"), op.constant([0]), op.constant(0))
    total = op.gather(op.shape_of(mask, "i64"), op.constant(1), op.constant(0))
    keys_at = op.unsqueeze(op.range(op.constant(0), total, op.constant(1), "i64"), op.constant([0, 1]))
    later = op.greater(keys_at, op.unsqueeze(positions, op.constant(2)))
    hidden = op.select(later, op.constant(np.float32(-65504)), op.constant(np.float32(0)))
    hidden = op.unsqueeze(hidden, op.constant(1))

    x = op.gather(weights(VOCABULARY, WIDTH), op.convert(ids, "i32"), op.constant(0))
    assigned = []
    for layer in range(LAYERS):

        def heads(y=x):
            y = op.matmul(y, weights(WIDTH, WIDTH), False, True)
            y = op.reshape(y, op.constant([0, 0, HEADS, HEAD_WIDTH]), True)
            return op.transpose(y, op.constant([0, 2, 1, 3]))

        query = heads()
        past = []
        for part in ("key", "value"):
            name = f"past_key_values.{layer}.{part}present.{layer}.{part}"
            whole, assign = _past(name, heads(), beam, batch)
            past.append(whole)
            assigned.append(assign)
        y = op.scaled_dot_product_attention(query, past[0], past[1], hidden)
        y = op.reshape(op.transpose(y, op.constant([0, 2, 1, 3])), op.constant([0, 0, WIDTH]), True)
        x = op.add(x, op.matmul(y, weights(WIDTH, WIDTH), False, True))
    logits = op.matmul(x, weights(VOCABULARY, WIDTH), False, True)
    result = op.result(logits)
    for node in (logits, result):
        node.output(0).get_tensor().set_names({"logits"})

    folder.mkdir(parents=True, exist_ok=True)
    model = ov.Model([result], assigned, [ids, mask, positions, beam], "tiny")
    config = {"model_type": "llama", "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": HEADS, "hidden_size": WIDTH, "vocab_size": VOCABULARY}
    generation = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps(generation))
    ov.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)
