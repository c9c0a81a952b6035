"""Kernel times by hwmodels/README.md, "Kernel time", in plain sums: a second implementation, which reads the configuration that
`run --json` states. Forms: `extended`, `p-norm`, `table` and `roofline`."""
import math


def value(tree):
    """The configuration with bare numbers in the place of quantities."""
    if isinstance(tree, dict):
        return tree["value"] if "value" in tree and "unit" in tree else {k: value(v) for k, v in tree.items()}
    return [value(x) for x in tree] if isinstance(tree, list) else tree


class Shape:
    """A kernel knows its pass by sums over the rows of all segments."""

    def __init__(self, window):
        self.window = window
        self.rows = self.logits = self.sequences = self.prompt_rows = 0
        self.pairs = self.keys = self.far_pairs = self.far_keys = 0

    def add(self, first, rows, prompt, logits):
        self.rows, self.sequences, self.logits = self.rows + rows, self.sequences + 1, self.logits + logits
        self.prompt_rows += rows * prompt
        self.keys += first + rows
        self.pairs += sum(first + i + 1 for i in range(rows))
        if self.window > 0:
            self.far_pairs += sum(max(0, first + i + 1 - self.window) for i in range(rows))
            self.far_keys += max(0, first + 1 - self.window)

    @property
    def decodes(self):
        """Sequences that decode, as far as sums tell: a row that verifies a draft counts as one."""
        return min(self.rows - self.prompt_rows, self.sequences - (self.prompt_rows > 0))

    def prompts(self):
        return self.sequences - (self.rows - self.prompt_rows)

    def decode_keys(self):
        """Keys of the decodes: prompts are taken to be equally long, with r rows each."""
        decodes = self.rows - self.prompt_rows
        if self.prompt_rows == 0 or decodes == 0 or self.prompts() <= 0:
            return self.keys if decodes > 0 else 0
        r = self.prompt_rows / self.prompts()
        if r <= 1:
            return self.keys * decodes / self.sequences
        keys = (r * self.keys - self.prompt_rows * (r - 1) / 2 - self.pairs) / (r - 1)
        return min(max(keys, decodes), self.keys - self.prompt_rows)


class Model:
    def __init__(self, m):
        self.m, self.hidden, self.layers = m, m["hidden"], m["layers"]
        self.mixers()
        self.experts, self.used = m.get("experts", 1), m.get("experts_per_token", 1)
        self.dense = m.get("dense_layers", 0) / self.layers  # share of layers without experts
        self.body = m["body_bytes_per_weight"]
        self.wide = max(self.body, m.get("dense_bytes_per_weight", 0))
        self.head = m["head_bytes_per_weight"]
        self.products = 3 if m["gated_ffn"] else 2
        self.kv_bytes = round(self.layers * self.stored_key * m["kv_bytes_per_element"], 6)  # of a token, without rounding errors of shares
        self.row_of_layer = m.get("layer_embedding", 0) * m.get("layer_embedding_bytes_per_weight", self.head)

    def mixers(self):
        """Attention of a layer, and what some layers have in its place. There are products (inputs, outputs, copies, ops) before and after
        it, flop of a pair, elements of a key, of a row's queries and outputs, of those with positions, and of a
        sequence's state. A kind counts by its layers."""
        m, h, heads = self.m, self.hidden, self.m["heads"]
        states, windows = m.get("recurrent_layers", 0) / self.layers, m.get("sliding_layers", 0) / self.layers
        wide = 1 - states - windows if m.get("global_head_dim", 0) else 0.0  # layers with heads of their own
        usual = 1 - states - wide
        self.before, self.after, self.pair, self.key, self.row, self.turned = [], [], 0.0, 0.0, 0.0, 0.0
        self.far_pair = self.far_key = self.unused = 0.0
        self.readers = []  # heads of a key, their elements, share of the layers, share of those with a window
        lend = m.get("shared_kv_layers", 0) / (self.layers * (1 - states))  # share of layers that attend to others' keys
        self.beside()

        def attention(share, dim, kv_heads, products, far):
            queries, keys = heads * dim * (2 if m.get("gated_attention") else 1), products * kv_heads * dim
            self.readers.append((kv_heads, dim, share, far))
            self.before.append((h, queries + keys, share * (1 - lend), share * (1 - lend)))
            self.before += [(h, queries, share * lend, share * lend)] if lend else []
            self.unused += h * keys * share * lend
            self.after.append((heads * dim, h, share, share))
            self.pair, self.far_pair = self.pair + 4.0 * heads * dim * share, self.far_pair + 4.0 * heads * dim * far
            self.key, self.far_key = self.key + 2 * kv_heads * dim * share, self.far_key + 2 * kv_heads * dim * far
            self.row, self.turned = self.row + 2 * heads * dim * share, self.turned + (heads + kv_heads * (1 - lend)) * dim * share

        if m.get("latent_kv", 0):
            latent, rotary, query = m["latent_kv"], m["rotary_dim"], m.get("latent_query", 0)
            queries = [(h, query), (query, heads * m["head_dim"])] if query else [(h, heads * m["head_dim"])]
            self.before += [(a, b, usual, usual) for a, b in [*queries, (h, latent + rotary)]]
            self.before.append((m["head_dim"] - rotary, latent, heads * usual, usual))
            self.after += [(latent, m["value_dim"], heads * usual, usual), (heads * m["value_dim"], h, usual, usual)]
            self.pair, self.key = 2.0 * heads * (2 * latent + rotary) * usual, (latent + rotary) * usual
            self.row, self.turned = heads * (2 * latent + rotary) * usual, (heads + 1) * rotary * usual
        elif usual > 0:
            attention(usual, m["head_dim"], m["kv_heads"], 2, windows)
        if wide > 0:
            attention(wide, m["global_head_dim"], m["global_kv_heads"], 1 if m.get("keys_as_values") else 2, 0.0)
        if states > 0:
            self.before.append((h, m["recurrent_in"], states, states))
            self.after.append((m["recurrent_out"], h, states, states))
            self.row += (m["recurrent_in"] + m["recurrent_out"]) * states
        self.state = m.get("recurrent_state", 0) * states
        self.stored_key = self.key * (1 - lend)
        ffn = (3 if m["gated_ffn"] else 2) * (2 if m.get("shared_ffn", 0) else 1)
        self.ops = {"QKV": sum(p[3] for p in self.before), "MHA": 1, "FFN": sum(p[3] for p in self.after) + ffn, "HEAD": 1}
        self.ops["LAYER"] = self.ops["QKV"] + 1 + self.ops["FFN"]
        self.further = {"QKV": 0.0, "HEAD": 0.0, "MHA": states if m.get("recurrent_state", 0) > 4 * h else 0.0,
                        "FFN": 1 - m.get("dense_layers", 0) / self.layers if m.get("experts", 1) > 1 else 0.0}
        self.further["LAYER"] = self.further["MHA"] + self.further["FFN"]

    def beside(self):
        """Products of what is beside attention and FFN, in front of a pass, in a layer, and behind the pass."""
        m, h, once = self.m, self.hidden, 1 / self.layers
        wide, rank, streams = m.get("layer_embedding", 0), m.get("laurel_rank", 0), max(0, m.get("altup_inputs", 0) - 1)
        self.before += [(h, wide * self.layers, once, once)] if wide else []
        self.after += [(h, wide, 1, 1), (wide, h, 1, 1)] if wide else []
        self.before += [(h, rank, 1, 1), (rank, h, 1, 1)] if rank else []
        self.before += [(h, h, streams * once, once)] if streams else []
        self.after += [(h, h, streams * once, once)] if streams else []

    def touched(self, rows):
        """Share of the experts that so many rows read."""
        n, k = self.experts, self.used
        effective = self.m.get("effective_experts", n)
        if n == 1 or effective >= n:
            return 1.0 if n == 1 else 1 - (1 - k / n) ** rows
        s = (n - k) / k / (n / effective - 1) - 1
        b = s * (n - k) / n
        return 1 - math.exp(math.lgamma(b + rows) - math.lgamma(b) - math.lgamma(s + rows) + math.lgamma(s))

    def stored_bytes(self):
        m, h = self.m, self.hidden
        ffn = self.experts * m["ffn_hidden"] * (1 - self.dense) * self.body
        ffn += (m.get("shared_ffn", 0) * (1 - self.dense) + m.get("dense_ffn", 0) * self.dense) * self.wide
        layer = sum(a * b * n for a, b, n, _ in self.before + self.after) * self.wide + self.products * h * ffn
        layer += self.unused * self.body + m["vocab"] * self.row_of_layer
        return self.layers * layer + h * m["vocab"] * self.head * (1 if m["tied_head"] else 2)

    def ffns(self, rows):
        """The FFNs of a layer: copies that a row computes, copies that are read, width, bytes per weight, chosen."""
        m, mixed = self.m, 1 - self.dense
        yield self.used * mixed, self.experts * self.touched(rows) * mixed, m["ffn_hidden"], self.body, self.experts > 1
        if m.get("shared_ffn", 0):
            yield mixed, mixed, m["shared_ffn"], self.wide, False
        if self.dense > 0:
            yield self.dense, self.dense, m["dense_ffn"], self.wide, False


class Machine:
    def __init__(self, config):
        config = value(config)
        self.soc, self.sim, self.model = config["soc"], config["sim"], Model(config["llm"])
        self.halves = 0  # kernels whose time is so near to half a ns that the order of a sum decides how it is rounded
        self.devices = self.soc["devices"]
        self.runtimes = [self.runtime(d["runtimes"], config["llm"]["weight_bits"]) for d in self.devices]

    @staticmethod
    def runtime(entries, bits):
        usual = next(r for r in entries if r.get("default"))
        same = [r for r in entries if r["weight_bits"] == bits]
        return next((r for r in same if r["runtime"] == usual["runtime"]), same[0] if same else usual)

    def chunk(self, d):
        return self.runtimes[d].get("chunk_rows", self.devices[d]["chunk_rows"])

    def join(self, r, compute, memory):
        p = r.get("knee", 1.2)
        return (compute**p + memory**p) ** (1 / p) if self.sim["hwmodel"] == "p-norm" else max(compute, memory)

    def products(self, d, op, rows, paid, shape, part):
        """Seconds of compute, bytes, and bytes of weights that every token uses."""
        r, m, plain = self.runtimes[d], self.model, self.sim["hwmodel"] == "roofline"
        one = paid == 1
        micro = self.micro(d, paid)
        filled = max(paid, 0 if one or plain else micro * r.get("min_rows", 0))
        fill = 1.0
        if not one and not plain:
            m0 = r["row_fill"] * (1 if shape.prompt_rows else r.get("batch_fill", 1))
            fill = (1 + m0 * micro / filled) * (1 + r.get("width_fill", 0) / m.hidden)
        compute = moved = weights = 0.0

        def add(inputs, outputs, width, copies=1.0, read=1.0, chosen=False):
            nonlocal compute, moved, weights
            slow = 1 + r.get("expert_fill", 2700) / m.m["ffn_hidden"] if chosen and not one and not plain else 1
            compute += 2.0 * filled * inputs * outputs * copies * part * fill * slow / self.rate(d, one)
            if chosen and shape.prompt_rows and not one and not plain:  # `read` of them are chosen in each micro-batch
                wide = 1 + r.get("width_fill", 0) / m.hidden
                compute += 2.0 * micro * r.get("expert_rows", 20) * inputs * outputs * read * part * wide / self.rate(d, one)
            moved += inputs * outputs * width * read * part * micro + 2.0 * paid * (inputs + outputs) * copies
            weights += 0 if chosen else inputs * outputs * width * read * part

        if op in ("QKV", "LAYER"):
            for inputs, outputs, copies, _ in m.before:
                add(inputs, outputs, m.wide, copies, copies)
            moved += m.row_of_layer * paid
        if op in ("FFN", "LAYER"):
            for inputs, outputs, copies, _ in m.after:
                add(inputs, outputs, m.wide, copies, copies)
            for copies, read, width, weight, chosen in m.ffns(rows / micro):
                for _ in range(m.products - 1):
                    add(m.hidden, width, weight, copies, read, chosen)
                add(width, m.hidden, weight, copies, read, chosen)
        if op == "HEAD":
            add(m.hidden, m.m["vocab"], m.head)
        moved += self.apart(op)[1] * paid
        return compute, moved, weights

    def apart(self, op):
        """Nonlinear ops that are launched by themselves, and their bytes for each row."""
        m, ops, moved = self.model, 0, 0.0
        if self.sim["nonlinear"] != "fused" and op in ("QKV", "LAYER"):
            ops, moved = 2, 4.0 * (m.hidden + m.turned)
        if self.sim["nonlinear"] != "fused" and op in ("FFN", "LAYER"):
            wide = sum(copies * width for copies, _, width, _, _ in m.ffns(1))
            ops += 5 if m.m.get("shared_ffn", 0) else 4
            moved += 2.0 * (8 * m.hidden + m.products * wide)
        return ops, moved

    def curve(self, d, one):
        return self.runtimes[d].get("one_row", self.runtimes[d]) if one else self.runtimes[d]

    def rate(self, d, one):
        return self.curve(d, one)["rate"] * 1e12

    def micro(self, d, rows):
        """Passes of many rows that a runtime makes of a kernel."""
        most = self.runtimes[d].get("micro_batch", 0)
        return math.ceil(rows / most) if most > 0 and self.sim["hwmodel"] != "roofline" else 1

    def attention(self, d, share, one, shape):
        """Seconds of compute, bytes, and bytes of gathering, of a share of a pass's rows."""
        r, m = self.runtimes[d], self.model
        skips = self.skips(d, shape)
        far = m.far_key / m.key if skips else 0.0
        own = shape.keys - far * shape.far_keys
        pairs = max(shape.pairs - (m.far_pair / m.pair if skips else 0.0) * shape.far_pairs, shape.rows * r.get("window", 0))
        keys = max(own, shape.sequences * r.get("window", 0))
        if r.get("pad_attention") and self.chunk(d) > 0:
            chunk = self.chunk(d)
            keys = math.ceil(keys / chunk) * chunk if shape.sequences == 1 else keys + shape.sequences * chunk / 2
        special = m.m.get("special_attention") and shape.prompt_rows > 0
        prompt = (special and r.get("special_attention", 0)) or r["attention"]
        decode = r.get("decode_attention", 0) or r["attention"]
        few = shape.prompt_rows < r.get("few_rows", 0) * shape.prompts()
        late = shape.pairs if few else min(shape.decode_keys(), shape.pairs)
        speed = shape.pairs / (late / decode + (shape.pairs - late) / prompt)
        speed, of_states = (1.0, 1.0) if self.sim["hwmodel"] == "roofline" else (speed, r.get("recurrence", 0) or r["attention"])
        key = m.key * m.m["kv_bytes_per_element"]
        further = max(0.0, shape.sequences * share - 1)
        gathered = r.get("kv_gather", 0) * key * own * further / shape.sequences
        flop = m.pair * pairs / speed + 6.0 * m.state * shape.rows / of_states
        moved = key * keys + 2.0 * m.row * shape.rows + 2 * 4.0 * m.state * shape.sequences
        return flop * share / self.rate(d, one), moved * share, gathered, further

    def skips(self, d, shape):
        """Whether keys behind a window are left out."""
        r = self.runtimes[d]
        return not shape.prompt_rows if r.get("decode_window") else r.get("sliding_window", False)

    def lacking(self, d, shape):
        """Bytes that engines which read several heads of a key at once could read where a model has none."""
        columns, elements = self.runtimes[d].get("kv_columns", 0), 0.0
        for heads, dim, share, far in self.model.readers if columns else []:
            keys = share * shape.keys - (far * shape.far_keys if self.skips(d, shape) else 0.0)
            elements += 2 * (math.ceil(heads / columns) * columns - heads) * dim * keys
        return elements * self.model.m["kv_bytes_per_element"]

    def wait(self, d, op, rows, paid, shape, part):
        """This op's part of the seconds by which the host prepares a layer, or the head, more slowly than it is computed."""
        r, m = self.runtimes[d], self.model
        each = ((shape.prompt_rows and r.get("prompt_enqueue", 0)) or r.get("enqueue", 0)) * 1e-6
        if op == "MHA" and rows > 1 and self.chunk(d) > 0:
            rows, paid = min(rows, self.chunk(d)), self.chunk(d)
        ops = {name: n + self.apart(name)[0] for name, n in m.ops.items()}
        whole = "HEAD" if op == "HEAD" else "LAYER"
        compute, moved, _ = self.products(d, whole, rows, paid, shape, part)
        lacks = ops[whole] * each * self.micro(d, paid) - self.join(r, compute, moved / (self.curve(d, paid == 1)["bandwidth"] * 1e9))
        return max(0.0, lacks) * ops[op] / ops[whole] if each > 0 else 0.0

    def table(self, r, rows):
        t = r.get("table", [])
        for a, b in zip(t, t[1:]):
            if a["rows"] <= rows <= b["rows"]:
                return a["factor"] + (b["factor"] - a["factor"]) * math.log(rows / a["rows"]) / math.log(b["rows"] / a["rows"])
        return (t[0] if rows < t[0]["rows"] else t[-1])["factor"] if t else 1.0

    def kernel(self, d, op, rows, paid, shape, columns=0):
        """ns of a kernel, ns in which its bytes move, and bytes."""
        r, device, m, form = self.runtimes[d], self.devices[d], self.model, self.sim["hwmodel"]
        curve, part, micro = self.curve(d, paid == 1), columns / 1024 if columns else 1.0, self.micro(d, paid)
        bandwidth, launch = curve["bandwidth"] * 1e9, curve["launch"] * 1e-6
        compute, moved, weights = self.products(d, op, rows, paid, shape, part)
        further = r.get("further_launches", 0) * m.further[op] if paid == 1 else 0.0
        ops = micro * (m.ops[op] + self.apart(op)[0] + further) * (r.get("fused_launches", 1) if op == "LAYER" else 1)
        again = 0.0
        if op in ("MHA", "LAYER"):
            more, keys, again, further = self.attention(d, rows / shape.rows, paid == 1, shape)
            compute, moved, ops = compute + more, moved + keys, ops + r.get("attention_launches", 0) * further
        memory = moved / bandwidth
        if form == "roofline":
            seconds = max(compute, memory)
        else:
            repeats = shape.decodes if shape.prompt_rows else shape.decodes - 1
            again += r.get("decode_batch_inefficiency", 0) * repeats * weights
            memory *= 1 if shape.prompt_rows else 1 + r.get("decode_batch_stretch", 0) * repeats
            seconds = ops * launch + again / bandwidth + self.join(r, compute, memory)
            if "exchange" in device and op in ("FFN", "LAYER"):
                x = device["exchange"]
                sent = 2 * (x["cards"] - 1) / x["cards"] * paid * 2.0 * m.hidden
                seconds += 2 * (x["latency"] * 1e-6 + sent / (x["link"] * 1e9))
            seconds += self.wait(d, op, rows, paid, shape, part)
            seconds += self.lacking(d, shape) * rows / shape.rows / bandwidth if op in ("MHA", "LAYER") else 0.0
            seconds += (self.sim["nonlinear"] == "offload") * self.apart(op)[0] * micro * self.soc["host"]["sync"] * 1e-6
            moved += again
        factor = self.table(r, paid) if form == "table" else 1
        exact = seconds * factor * 1e9
        ns = max(1, math.floor(exact + 0.5))
        self.halves += abs(exact + 0.5 - round(exact + 0.5)) < 1e-12 * exact
        late = device.get("compute_only", 0)
        loads = ns if late == 0 else min(ns, math.ceil(max((1 - late) * ns, moved / bandwidth * 1e9, 1)))
        return ns, loads, min(moved, self.soc["ddr"]["peak"] * loads) if factor < 1 else moved
