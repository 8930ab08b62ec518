"""Who may import whom, file by file; the public list; and that every error condition has a test."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import CersqlError

ROOT = Path(__file__).parents[1]
PACKAGES = ("runtime", "planner", "spark_ext", "cersql")

ALLOWED = {
    "runtime": {"runtime", "numpy", "numba", "pyarrow"},
    "planner": {
        "planner",
        "runtime.program",
        "runtime.marks",
        "runtime.chain_cea",
        "runtime.clauses",
        "runtime.deferred",
        "runtime.ranged",
        "runtime.monoids",
        "runtime.nodes",
        "runtime.pcea",
        "runtime.position_automaton",
        "runtime.own",
        "runtime.relations",
        "runtime.sieve",
        "runtime.two_stacks",
        "runtime.scan.conditions",
        "runtime.errors",
        "sqlglot",
        "numpy",
    },
    "spark_ext": {"spark_ext", "planner", "runtime", "pyspark", "pyarrow", "numpy", "py4j"},
    "cersql": {"cersql", "spark_ext", "planner", "runtime", "sqlglot"},
}
# Files with a rule of their own, instead of their package's.
EXCEPTIONS = {
    "spark_ext/guarding.py": {"runtime"},
    "spark_ext/worker.py": {"runtime", "spark_ext.guarding", "pyspark", "pyarrow", "numpy"},
    "spark_ext/stream_worker.py": {"runtime", "spark_ext.guarding", "pyspark", "pyarrow", "numpy", "pandas"},
    # EXPLAIN prints the deterministic automaton by the worker's own rule: a second one here could differ from it.
    "planner/deterministic.py": ALLOWED["planner"]
    | {"runtime.automata.determinize", "runtime.automata.determinize_composed", "runtime.automata.machine"},
    "cersql/language/parse.py": ALLOWED["cersql"] | {"lark"},
    # The command line, and what it prints.
    "cersql/cli/main.py": ALLOWED["cersql"] | {"rich"},
    "cersql/cli/demo.py": ALLOWED["cersql"] | {"rich"},
    "cersql/cli/running.py": ALLOWED["cersql"] | {"rich"},
    "cersql/cli/checking.py": ALLOWED["cersql"] | {"rich", "pyspark.errors"},
    "cersql/cli/reports.py": ALLOWED["cersql"] | {"rich"},
    "cersql/cli/progress.py": ALLOWED["cersql"] | {"rich"},
    "cersql/cli/output.py": ALLOWED["cersql"] | {"rich", "pyarrow"},
    "cersql/cli/shell.py": ALLOWED["cersql"] | {"rich", "prompt_toolkit", "pygments"},
    "cersql/__main__.py": ALLOWED["cersql"] | {"rich"},
}

# The groups of each package, lowest first: a file imports from its own group and from those before it. Files that stand
# beside the groups are below them all, but for those of TOP.
GROUPS = {
    "runtime": ("compact_set", "automata", "steppers", "selection", "partition", "scan", "stream"),
    "planner": ("rewrite", "automata", "relational"),
    "cersql": ("language", "binding", "show", "statements", "cli"),
}
TOP = {
    "runtime/engine.py": "selection",
    "runtime/warm.py": "partition",
    "planner/choice.py": "automata",
    "planner/watching.py": "automata",
    "planner/candidates.py": "automata",
    "planner/lower.py": "automata",
    "planner/compile.py": "automata",
    "planner/layout.py": "automata",
    "planner/physical.py": "automata",
    "planner/reasons.py": "automata",
    "planner/second_pass.py": "automata",
    "planner/symbols.py": "automata",
    "planner/streaming.py": "automata",
    "planner/deterministic.py": "automata",
    "cersql/api.py": "statements",
    "cersql/__init__.py": "cli",
    "cersql/__main__.py": "cli",
}

# Conditions that nothing from outside can cause, or that are tested elsewhere, with the reason.
UNCAUSABLE = {
    "INTERNAL": "a mistake of ours: no input causes it",
}


@functools.cache
def sources() -> tuple[Path, ...]:
    return tuple(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Everything in the file's tree, read and walked once a process."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of every import in the file, also inside functions.

    Under `if TYPE_CHECKING` the names of pyspark are left out: they serve annotations, nothing is imported.
    """
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    annotations = {
        inner
        for node in nodes(path)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").split(".")[0] == "pyspark"
    }
    for node in nodes(path):
        if node in annotations and path.relative_to(ROOT).parts[0] == "cersql":
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*base, module]).rstrip(".")
            # `from runtime import program` imports runtime.program
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def is_allowed(name: str, allowed: set[str]) -> bool:
    if name.split(".")[0] in sys.stdlib_module_names:
        return True
    return any(name == entry or name.startswith(entry + ".") for entry in allowed)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports(path: Path) -> None:
    file = path.relative_to(ROOT).as_posix()
    allowed = EXCEPTIONS.get(file, ALLOWED[file.split("/")[0]])
    wrong = [f"{file}:{line} imports {name}" for line, name in imports(path) if not is_allowed(name, allowed)]
    assert not wrong, f"{wrong}; it may import the standard library and {sorted(allowed)}"


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


@functools.cache
def graph() -> dict[str, set[str]]:
    """Module → the modules of ours that it imports, also inside functions."""
    modules = {module_of(path): path for path in sources()}
    found: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = {name for _, imported in imports(path) for name in (imported, imported.rpartition(".")[0])}
        exact = {name for _, name in imports(path) if name in modules}
        found[module] = exact | {name for name in names - exact if name in modules and "." in name} - {module}
        packages = {name for name in found[module] if modules[name].name == "__init__.py"}
        found[module] -= packages
    return found


def test_no_file_imports_itself_in_a_circle() -> None:
    """Neither at its head nor inside a function."""
    left = dict(graph())
    while free := [module for module, used in left.items() if not used & left.keys()]:
        for module in free:
            del left[module]
    assert not left, f"in or behind a circle: {sorted(left)}"


# What takes long to import, or need not be installed: a command, a view or a check that does without must not pay.
HEAVY = ("numba", "pandas", "pyarrow", "pyspark", "pyspark.sql.connect", "sqlglot", "prompt_toolkit", "rich")
# A function in it is pickled by value, and runs where this module is not.
SHIPPED = {"spark_ext/shipping.py"}


def lines_in(kind: type[ast.AST], path: Path) -> frozenset[int]:
    """The lines of imports inside functions, or under conditions, of the file."""
    return frozenset(
        node.lineno
        for around in nodes(path)
        if isinstance(around, kind)
        for node in ast.walk(around)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


@functools.cache
def inside_functions(path: Path) -> frozenset[int]:
    return lines_in(ast.FunctionDef, path)


@functools.cache
def at_once() -> dict[str, set[str]]:
    """Module of ours → what it imports before a function of it is called; not what serves annotations alone."""
    found: dict[str, set[str]] = {}
    for path in sources():
        later = inside_functions(path) | lines_in(ast.If, path)
        names = {name for line, name in imports(path) if line not in later}
        found[module_of(path)] = names | {name.rpartition(".")[0] for name in names}
    return found


@functools.cache
def heavy(module: str) -> frozenset[str]:
    """What of HEAVY is imported with a module."""
    found, todo = {module, module.rpartition(".")[0]}, [module, module.rpartition(".")[0]]
    while todo:
        new = at_once().get(todo.pop(), set()) - found
        found |= new
        todo += new
    return frozenset(entry for entry in HEAVY for name in found if f"{name}.".startswith(f"{entry}."))


def test_imports_inside_functions_spare_what_is_heavy() -> None:
    """Where nothing heavy is spared an import stands at the head, since it hides a circle there, or is a habit."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources()
        if path.relative_to(ROOT).as_posix() not in SHIPPED
        for line, name in imports(path)
        if line in inside_functions(path) and heavy(name) <= heavy(module_of(path))
    ]
    assert not wrong, f"none of {HEAVY} is imported by it that was not there before: {wrong}"


def level(path: Path) -> tuple[int, str]:
    """(how high it stands in its package, the group)."""
    package, *_ = parts = path.relative_to(ROOT).parts
    groups = GROUPS.get(package, ())
    group = TOP.get("/".join(parts), parts[1] if len(parts) > 2 else "")
    return (groups.index(group) + 1 if group else 0), group


@pytest.mark.parametrize("package", GROUPS)
def test_groups_import_downwards(package: str) -> None:
    paths = {module_of(path): path for path in sources()}
    wrong = [
        f"{module} imports {used}"
        for module, names in graph().items()
        for used in names
        if module.startswith(f"{package}.") and used.startswith(f"{package}.")
        if level(paths[module])[0] < level(paths[used])[0]
    ]
    assert not wrong, f"groups are, lowest first, {GROUPS[package]}: {wrong}"


def test_groups_are_folders() -> None:
    for package, groups in GROUPS.items():
        folders = {path.name for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()}
        assert folders == set(groups)


def test_the_rule_itself_refuses() -> None:
    assert not is_allowed("runtime.engine", ALLOWED["planner"])
    assert not is_allowed("numba", ALLOWED["cersql"])
    assert not is_allowed("lark", ALLOWED["cersql"])
    assert is_allowed("runtime.program.Program", ALLOWED["planner"])
    assert is_allowed("collections.abc", set())


# Files that take a hidden mark apart by themselves; both belong to work that goes on elsewhere.
SPELL_MARKS = {"runtime/marks.py", "runtime/selection/select.py", "cersql/statements/functions.py"}


def test_one_file_knows_how_hidden_marks_are_spelled() -> None:
    taking = re.compile(r"""(startswith|removeprefix|lstrip|==|\+)\s*\(?f?["']@|["']@["']\s*\+""")
    found = {path.relative_to(ROOT).as_posix() for path in sources() if taking.search(path.read_text(encoding="utf-8"))}
    assert found <= SPELL_MARKS


def test_tests_are_no_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py")), "tests/cersql would shadow cersql"


def test_the_public_list_is_real() -> None:
    cersql = importlib.import_module("cersql")
    names = list(cersql.__all__)
    assert len(names) == len(set(names))
    missing = [name for name in names if not hasattr(cersql, name)]
    assert not missing, f"cersql.__all__ lists what is not there: {missing}"


def error_classes() -> list[type[CersqlError]]:
    """All classes of errors."""
    for module in ("runtime.errors", "planner.errors", "spark_ext.errors", "cersql.errors"):
        if (ROOT / module.replace(".", "/")).with_suffix(".py").exists():
            importlib.import_module(module)
    found, open_ = [], [CersqlError]
    while open_:
        cls = open_.pop()
        found.append(cls)
        open_ += cls.__subclasses__()
    return found


def test_errors_are_defined_where_they_are_looked_for() -> None:
    """A subclass of CersqlError stands in an errors.py, so that the lists below are complete."""
    errors = {cls.__name__ for cls in error_classes()}
    for path in sources():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and path.name != "errors.py":
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                assert not bases & errors, f"{path}: {node.name}"


def test_every_condition_has_a_test() -> None:
    words = {
        word
        for path in (ROOT / "tests").rglob("*")
        if path.suffix in {".py", ".toml", ".txt"} and path != Path(__file__)
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    untested = {
        f"{cls.__name__}.{condition}"
        for cls in error_classes()
        for condition in getattr(cls, "conditions", {})
        if condition not in words | UNCAUSABLE.keys()
    }
    assert not untested, f"no test causes: {sorted(untested)}"


def test_conditions_are_written_for_people() -> None:
    for cls in error_classes():
        for name, condition in getattr(cls, "conditions", {}).items():
            assert name == name.upper(), name
            assert len(condition.sqlstate) == 5, name
            assert condition.message.endswith((".", "}")), f"{name}: a message is a sentence"


def test_the_page_on_architecture_names_files_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:cersql|planner|runtime|spark_ext)/[\w/.]+)`", page)
    assert len(named) > 30
    assert not [name for name in named if not (ROOT / name).exists()]


MOST_PARAMETERS = 8  # of a compiled function: what belongs together comes in a bundle, a named tuple


def kernels() -> list[tuple[Path, ast.FunctionDef]]:
    """All functions that are compiled."""
    found = []
    for path in sources():
        for node in nodes(path) if path.is_relative_to(ROOT / "runtime") else ():
            if isinstance(node, ast.FunctionDef) and {"kernel", "inlined", "called"} & set(
                map(ast.unparse, node.decorator_list)
            ):
                found.append((path, node))
    return found


def test_kernels_take_few_parameters() -> None:
    assert len(kernels()) > 100
    many = [
        f"{path.relative_to(ROOT)}: {node.name} takes {n}"
        for path, node in kernels()
        if (n := len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)) > MOST_PARAMETERS
        or node.args.vararg
        or node.args.kwarg
    ]
    assert not many


def says(path: Path, word: re.Pattern[str]) -> bool:
    """Does the word stand in the code, in a name or a text? Docstrings and comments may have it as an example."""
    documented = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    return any(
        isinstance(value, str) and word.search(value)
        for node in nodes(path)
        if id(node) not in documented
        for value in (getattr(node, field, None) for field in ("id", "attr", "name", "value"))
    )


def test_an_operator_touches_few_places() -> None:
    """Those that the page for contributors lists."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page[page.index("## A new operator") : page.index("## A new clause")]
    listed = set(re.findall(r"^\|.*`((?:cersql|planner|runtime)/[\w/.]+)`.*\|.*\|$", section, re.MULTILINE))
    found = {
        path.relative_to(ROOT).as_posix() for path in sources() if says(path, re.compile(r"\bUNLESS\b|Unless|unless_"))
    }
    dialect = {"cersql/language/ceql_pattern.py", "cersql/language/ceql_words.py"}
    assert found | {"cersql/language/grammar.lark"} == listed | dialect
    assert len(listed) <= 8
