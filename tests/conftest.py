"""Options, profiles and fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = Path(__file__).parent / "golden"

_quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("dev", deadline=None, max_examples=100, suppress_health_check=_quiet)
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("thorough", parent=settings.get_profile("dev"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the files under tests/golden instead of comparing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs Spark; leave the long tests out unless the -m expression names them."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)
    if "exhaustive" in (config.getoption("markexpr") or ""):
        return
    long = [item for item in items if item.get_closest_marker("exhaustive")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """`golden(stage, name, text)`: the text is that of tests/golden/<stage>/<name>.txt, or becomes it under --bless."""
    bless = request.config.getoption("--bless")

    def compare(stage: str, name: str, text: str) -> None:
        path = GOLDEN / stage / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(
                f"{path.relative_to(GOLDEN.parent)} does not exist; review this and run pytest --bless:\n{text}"
            )
        assert text == path.read_text(encoding="utf-8"), "the print changed; if it should, run pytest --bless"

    return compare


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small local SparkSession for the whole run."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("cersql-tests")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")  # most of it runs once
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
