"""Scheduling policies for xpusim in Python, and readers of its results.

A policy is a class derived from `Policy` (policy.py); `xpusim run --policy python:FILE.py:CLASS`
runs it. `helpers` has orders, batches and placement; `results` reads what xpusim writes and has
`compare` for notebooks. The protocol underneath is docs/policy-protocol.md."""

from .policy import (Device, Estimate, Launch, Llm, Machine, MachineState, Param, Pass, Policy,
                     Refused, Request, Segment, Shape)

__all__ = ["Device", "Estimate", "Launch", "Llm", "Machine", "MachineState", "Param", "Pass",
           "Policy", "Refused", "Request", "Segment", "Shape", "compare", "read_decisions", "read_requests",
           "read_result", "read_store", "run", "serve"]

_LATER = {"compare": "results", "run": "results", "read_decisions": "results", "read_requests": "results",
          "read_result": "results", "read_store": "results", "serve": "wire"}


def __getattr__(name: str):  # a policy that runs needs neither sqlite3 nor subprocess
    if name in _LATER:
        import importlib
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    raise AttributeError(name)
