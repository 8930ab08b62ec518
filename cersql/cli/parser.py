"""The parser of the command line: what is wrong, the nearest right thing, and one line on where to read more.

cersql rnu q.sql                 There is no command rnu. Did you mean run?
cersql q.sql                     There is no command q.sql. To run a file of statements: cersql run q.sql
cersql run q.sql --tabel t=…     run has no option --tabel. Did you mean --table?
cersql run q.sql t=t.csv         t=t.csv is one argument too many. A table is given as --table t=t.csv
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cersql.errors import did_you_mean


class Parser(argparse.ArgumentParser):
    """In place of the usage, of many lines, an error names `--help`."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}\n{self.prog} --help says more.", file=sys.stderr)
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """argparse's own message lists the choices alone."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"There is no command {shlex.quote(str(value))}. {_meant(str(value), choices)}")
        hint = did_you_mean(str(value), choices)
        raise argparse.ArgumentError(action, f"{value!r} is none of {', '.join(choices)}.{f' {hint}' if hint else ''}")

    def parsed(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """The arguments, all of which some command knows."""
        given = sys.argv[1:] if argv is None else list(argv)
        if not given:
            self.print_help(sys.stderr)
            sys.exit(2)
        arguments, left = self.parse_known_args(given)
        if left:
            self._command(given).left_over(left, given)
        return arguments

    def _command(self, given: Sequence[str]) -> Parser:
        """The parser of the command among the arguments."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return next((action.choices[word] for word in given if word in action.choices), self)
        return self

    def left_over(self, left: Sequence[str], given: Sequence[str]) -> NoReturn:
        """Says what is to be done with the first argument that nobody took."""
        first, name = left[0], self.prog.rpartition(" ")[2]
        flags = [flag for action in self._actions for flag in action.option_strings]
        if first.startswith("-"):
            near = did_you_mean(first.partition("=")[0], flags) or f"It has: {', '.join(flags)}."
            self.error(f"{name} has no option {first}. {near}")
        hint = ""
        if "=" in first and "--table" in flags:
            hint = f" A table is given as --table {first}"
        elif "--init" in flags and Path(first).is_file():
            hint = f" Statements to begin with are given as --init {first}"
        elif "--execute" in flags:
            hint = f' A text is one argument, in quotes: {self.prog} -e "{" ".join(given[1:])}"'
        self.error(f"{shlex.quote(first)} is one argument too many.{hint}")


_ASKED = {"help": "cersql --help", "version": "cersql --version", "sql": "cersql shell", "query": "cersql run"}


def _meant(word: str, commands: Sequence[str]) -> str:
    """What to write for a word that is no command."""
    if " " in word.strip():
        return f'To run a text: cersql run -e "{word}"'
    if Path(word).suffix or Path(word).is_file():
        return f"To run a file of statements: cersql run {shlex.quote(word)}"
    if word.lower() in _ASKED:
        return f"Write {_ASKED[word.lower()]}"
    return did_you_mean(word, commands) or f"There are: {', '.join(commands)}."
