"""Why a command of the command line cannot be carried out; main.py turns it into an exit code."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot be carried out, for a reason that is none of the query's."""

    exit_code = 1


class UsageError(CommandError):
    """A command was called wrongly."""

    exit_code = 2
