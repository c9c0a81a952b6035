"""What the package takes from `typing` and `json` when a policy runs, in a tenth of their time.

A run of a policy is often shorter than the imports of an interpreter: `typing` alone took a third
of its start. Type checkers see the modules themselves."""

from __future__ import annotations

from _collections import _tuplegetter

TYPE_CHECKING = False
_new = tuple.__new__


class _Fields(type):
    """Makes of a class of annotations what `typing.NamedTuple` makes of it."""

    def __new__(mcs, name, bases, body):
        if not bases:
            return super().__new__(mcs, name, bases, body)
        fields = tuple(body.get("__annotations__", ()))
        values = {"_new": _new, **{"_value_" + f: body[f] for f in fields if f in body}}
        given = ["%s=_value_%s" % (f, f) if f in body else f for f in fields]
        new = eval("lambda _cls, %s: _new(_cls, (%s,))" % (", ".join(given), ", ".join(fields)), values)  # pylint: disable=eval-used
        new.__name__, new.__qualname__ = "__new__", name + ".__new__"
        own = {**body, "__slots__": (), "__new__": new, "__match_args__": fields, "_fields": fields,
               "_field_defaults": {f: body[f] for f in fields if f in body},
               **{f: _tuplegetter(i, "Alias for field number %d" % i) for i, f in enumerate(fields)}}
        return type(name, (_Named,), own)


class _Named(tuple):
    """The methods of `collections.namedtuple`."""

    __slots__ = ()
    _fields = ()

    @classmethod
    def _make(cls, values):
        made = _new(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError("Expected %d arguments, got %d" % (len(cls._fields), len(made)))
        return made

    def _replace(self, **other):
        made = self._make(map(other.pop, self._fields, self))
        if other:
            raise ValueError("Got unexpected field names: %r" % list(other))
        return made

    def _asdict(self):
        return dict(zip(self._fields, self))

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % pair for pair in zip(self._fields, self)))

    def __getnewargs__(self):
        return tuple(self)


class NamedTuple(metaclass=_Fields):
    """Base of a class whose annotations are its members."""


def json_in_c():
    """(scanner of a text at an index, encoder of a value to pieces): those that json uses, which costs
    json.decoder its regular expressions. Not there: None."""
    try:
        from _json import encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:
        return None

    class Context:  # json.JSONDecoder's
        strict = True
        object_hook = object_pairs_hook = None
        parse_float, parse_int = float, int
        parse_constant = {"-Infinity": -float("inf"), "Infinity": float("inf"), "NaN": float("nan")}.__getitem__

    def other(what):
        raise TypeError("Object of type %s is not JSON serializable" % type(what).__name__)

    return make_scanner(Context()), make_encoder(None, other, encode_basestring_ascii, None, ":", ",", False, False, True)
