"""A checksum of the code that makes a score: its module and the modules that this imports."""

import ast
import hashlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType


def checksum(function: Callable) -> str:
    """Checksum of a metric's code: any edit on which its scores could depend changes it.

    Covers the function's module and, transitively, all modules that it imports from its own
    top-level package and from this library. The versions of other packages stand in the provenance
    record. A function written in a notebook or a shell has no file: its bytecode is taken.

    Returns:
        16 hexadecimal digits, the same in every process, and for a file that is imported as for one
        that is run.

    >>> from lib.endex import length, question
    >>> checksum(length) == checksum(question)  # one module
    True
    """
    module = inspect.getmodule(function)
    if getattr(module, "__file__", None) is None:
        return hashlib.sha256(_bytecode(function.__code__).encode()).hexdigest()[:16]
    digest = hashlib.sha256()
    for name, file in sorted(modules(_name(module), Path(module.__file__)).items()):
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def modules(name: str, file: Path) -> dict[str, Path]:
    """Name and file of a module and of those that it imports from its own package and from ours.

    Read from the source, so that an import inside a function counts as well.

    >>> from lib.overlap_metrics import word_f1
    >>> sorted(modules(word_f1.__name__, word_f1.__file__))
    ['lib.blank', 'lib.overlap_metrics.texts', 'lib.overlap_metrics.word_f1']
    """
    found, waiting = {}, {name: Path(file)}
    followed = {name.split(".")[0], __name__.split(".")[0]}
    while waiting:
        module, file = waiting.popitem()
        found[module] = file
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for one in _imports(tree, module, file):
            if one.split(".")[0] in followed and one not in found and (source := _file(one)):
                waiting[one] = source
    return found


def _name(module: ModuleType) -> str:
    """Name under which a module can be imported, also where it was run as a script."""
    if module.__name__ != "__main__":
        return module.__name__
    return module.__spec__.name if module.__spec__ else Path(module.__file__).stem


def _imports(tree: ast.Module, module: str, file: Path) -> Iterator[str]:
    """What a source may import: each name of `from a import b` could be a module as well."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) + 1 - node.level]
            source = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    """Source of a module; None for a name that is none (a class or function, say)."""
    try:
        spec = importlib.util.find_spec(module)
    except (ModuleNotFoundError, ValueError):  # its parent is no package; it has no specification
        spec = None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _bytecode(code: CodeType) -> str:
    """What a function does, without what differs from process to process: addresses, set order."""
    constants = [
        _bytecode(c)
        if isinstance(c, CodeType)
        else repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)
        for c in code.co_consts
    ]
    return repr((code.co_code.hex(), code.co_names, constants))
