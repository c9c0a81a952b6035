"""edf: the twin of policies/edf.c under its default axes."""

from xpusim import Param
from xpusim.helpers import Iterations


class Edf(Iterations):
    """Earliest deadline first: the first token, then every further token."""

    name = "edf-py"
    steady = True
    params = tuple(Iterations.params) + (
        Param("ttft_slo_s", 2.0, "reactive first-token deadline where the trace has none, s", 0, 1e6),
        Param("tbt_slo_s", 0.2, "reactive per-token deadline where the trace has none, s", 0, 1e6),
        Param("proactive_s", 600.0, "deadline of proactive requests, s after arrival", 0, 1e9))

    def init(self):
        super().init()
        self.ttft_ns, self.tbt_ns, self.proactive_ns = (
            round(self.param[name] * 1e9) for name in ("ttft_slo_s", "tbt_slo_s", "proactive_s"))

    def key(self, r):
        if r.deadline_ns is not None:
            return r.deadline_ns
        if r.cls == "proactive":
            return r.arrival_ns + self.proactive_ns
        if r.first_token_ns is None:
            slo = r.ttft_slo_ns
            return r.arrival_ns + (slo if slo is not None else self.ttft_ns)
        slo = r.tbt_slo_ns
        return r.last_token_ns + (slo if slo is not None else self.tbt_ns)
