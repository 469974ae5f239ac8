"""The public surface: what `__all__` says is true, small and documented, and the stub fits the core."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sardonyx
from sardonyx import _core

PACKAGE = Path(sardonyx.__file__).parent


def modules() -> list[str]:
    """All modules of the package but Spark's, which load PySpark, and the command line's entry."""
    found = [info.name for info in pkgutil.walk_packages([str(PACKAGE)], "sardonyx.")]
    return [
        name for name in found if not name.startswith("sardonyx.spark") and not name.endswith(("__main__", "_core"))
    ]


def test_all_is_truthful_and_small() -> None:
    assert sorted(sardonyx.__all__, key=str.lower) == sorted(set(sardonyx.__all__), key=str.lower)
    assert len(sardonyx.__all__) <= 18
    for name in sardonyx.__all__:
        assert getattr(sardonyx, name) is not None
    public = {
        name
        for name, value in vars(sardonyx).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name not in sardonyx.__all__
    }
    assert public == set()


@pytest.mark.parametrize("name", modules())
def test_each_module_s_all_is_truthful(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public), public


def members(value: Any) -> Iterator[tuple[str, Any]]:
    for name, member in vars(value).items():
        target = getattr(member, "__func__", getattr(member, "fget", member))
        if inspect.isfunction(target) and not name.startswith("_"):
            yield name, target


def test_everything_public_is_documented() -> None:
    checked = 0
    for name in sardonyx.__all__:
        value = getattr(sardonyx, name)
        if not callable(value):
            continue
        assert inspect.getdoc(value), name
        checked += 1
        for member, function in members(value) if inspect.isclass(value) else ():
            assert function.__doc__, f"{name}.{member}"
            checked += 1
    assert checked > 30


def test_every_field_of_public_values_is_described() -> None:
    checked = 0
    for name in ("model", "reports", "explanation", "tabular"):
        tree = ast.parse((PACKAGE / f"{name}.py").read_text())
        for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            for field, after in zip(cls.body, cls.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign):
                    assert isinstance(after, ast.Expr), f"{name}.{cls.name}: {ast.unparse(field)}"
                    checked += 1
    assert checked > 30


def test_the_stub_and_the_core_name_the_same_things() -> None:
    """The quick part of `make types`, which compares signatures as well."""
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    checked = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert hasattr(_core, node.name), node.name
        if isinstance(node, ast.ClassDef) and not any("TypedDict" in ast.unparse(base) for base in node.bases):
            cls = getattr(_core, node.name)
            for method in (item for item in node.body if isinstance(item, ast.FunctionDef)):
                assert hasattr(cls, method.name), f"{node.name}.{method.name}"
                checked += 1
    assert checked > 15
    typing_only = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    missing = {name for name in dir(_core) if not name.startswith("_")} - typing_only
    assert missing == set()


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_importing_the_package_loads_neither_spark_nor_the_command_line() -> None:
    import subprocess
    import sys

    code = "import sys, sardonyx; print([m for m in ('pyspark', 'rich', 'click', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
