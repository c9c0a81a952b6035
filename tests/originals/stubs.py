"""Invents modules that are not installed. Every name in them exists and does nothing. So a scheduler's decision code
can be imported without GPU, model and server. Within invented(ROOT, PACKAGE, REAL) the modules named in REAL are loaded
from ROOT. The rest of the package is invented, like every other module that is not installed."""

import contextlib
import importlib.machinery
import importlib.util
import inspect
import sys
import types


def _is_decorated(args, kwargs):
    return len(args) == 1 and not kwargs and (inspect.isfunction(args[0]) or inspect.isclass(args[0]))


def _name(n):
    if n.startswith("__"):
        raise AttributeError(n)
    return _Meta(n, (Stub,), {})


class _Meta(type):
    """Makes invented classes: any attribute is another one, and as a decorator each gives back its argument."""

    def __getattr__(cls, n):
        made = _name(n)
        setattr(cls, n, made)
        return made

    def __call__(cls, *args, **kwargs):
        return args[0] if _is_decorated(args, kwargs) else type.__call__(cls, *args, **kwargs)

    def __getitem__(cls, _):
        return cls

    def __or__(cls, _):
        return cls

    __ror__ = __or__


class Stub(metaclass=_Meta):
    """An instance is false, and a context."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, n):
        return _name(n)

    def __call__(self, *args, **kwargs):
        return args[0] if _is_decorated(args, kwargs) else Stub()

    def __bool__(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class _Module(types.ModuleType):
    def __getattr__(self, n):
        made = _name(n)
        setattr(self, n, made)
        return made


class _Anything:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


class _Package(_Anything):
    def __init__(self, root, package, real):
        self.root, self.package, self.real = root, package, real

    def find_spec(self, name, path=None, target=None):
        if name in self.real:
            return importlib.util.spec_from_file_location(name, self.root / (name.replace(".", "/") + ".py"))
        return super().find_spec(name) if name.split(".")[0] == self.package else None


@contextlib.contextmanager
def invented(root, package, real):
    finders = _Package(root, package, real), _Anything()
    sys.meta_path[:] = [finders[0], *sys.meta_path, finders[1]]
    try:
        yield
    finally:
        sys.meta_path[:] = [f for f in sys.meta_path if f not in finders]
