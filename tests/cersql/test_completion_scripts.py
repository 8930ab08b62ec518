"""The scripts of `cersql completion`: what bash offers, and that every command and option is in each of them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from cersql.cli import completion_scripts
from cersql.cli.main import _parser, main

COMMANDS = ["demo", "run", "explain", "check", "shell", "serve", "warm", "completion"]


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def offered(text: str, *words: str) -> list[str]:
    """What bash offers for the last of the words, which are cut as its line editor cuts them."""
    typed = " ".join(map(shlex.quote, words))
    asked = f'{text}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _cersql; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["r"], ["run"]),
        (["c"], ["check", "completion"]),
        (["--v"], ["--version"]),
        (["run", "--f"], ["--format"]),
        (["run", "--format", ""], ["table", "csv", "json", "parquet"]),
        (["run", "q.sql", "--format", "p"], ["parquet"]),
        (["explain", "--stage", "a"], ["automaton"]),
        (["completion", ""], ["bash", "zsh", "fish", "-h", "--help"]),
        (["serve", "--p"], ["--port"]),
        (["run", ""], []),  # nothing of ours: names of files
        (["run", "--output", "x"], []),
        (["run", "--table", "t", "=", "x"], []),
    ],
)
def test_bash_offers(words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(script("bash", capsys), "cersql", *words) == expected


def test_bash_takes_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cersql.bash"
    file.write_text(script("bash", capsys), encoding="utf-8")
    told = subprocess.run(["bash", "-c", f". {file}; complete -p cersql"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "complete -o default -F _cersql cersql"


@pytest.mark.parametrize("shell", completion_scripts.SHELLS)
def test_all_commands_and_options_are_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    commands = list(completion_scripts._commands(_parser()))
    assert [command.name for command in commands] == COMMANDS
    for command in commands:
        assert command.help
        for option in command.options:
            assert option.help
            for flag in option.flags:
                assert (f" {flag.lstrip('-')} " if shell == "fish" else flag) in text


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=script(shell, capsys), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_offers(capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    text = script("fish", capsys)
    for typed, expected in (("cersql ru", "run"), ("cersql run --form", "--format"), ("cersql run --format j", "json")):
        asked = f"{text}\ncomplete -C {shlex.quote(typed)}"
        done = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, check=True)
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [expected]
