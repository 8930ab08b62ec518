"""`cersql completion SHELL`: a script that completes commands, options and values in bash, zsh or fish.

The scripts are made from the parser, so that a new option is in them, and hold all words: a Tab starts no Python, which
takes a second here, and no package is needed for it, as argcomplete would be.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cersql.cli.arguments import Commands

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """`--output FILE`, with all ways to write it. `values`: what it takes (None: anything; (): nothing)."""

    flags: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None


FILES = ("files",)
"""In place of values: names of files, of NAME=FILE behind the `=`."""


@dataclass(frozen=True)
class Command:
    name: str
    help: str
    options: tuple[Option, ...]
    operands: tuple[str, ...]
    """What may stand behind the options: FILES, a choice, or nothing."""


def register(commands: Commands, parser: argparse.ArgumentParser) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script with which the shell completes commands and options",
        description="Print a script with which a shell completes commands, options and names of files.",
        epilog='bash: eval "$(cersql completion bash)" in ~/.bashrc. zsh: cersql completion zsh > a folder of $fpath, '
        "as _cersql. fish: cersql completion fish > ~/.config/fish/completions/cersql.fish",
    )
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(command=lambda arguments: print_script(parser, arguments.shell))


def print_script(parser: argparse.ArgumentParser, shell: str) -> None:
    print(script(parser, shell), end="")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script of a shell for a parser with commands."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    return "\n".join(write(_options(parser), list(_commands(parser)))) + "\n"


# ---------------------------------------------------------------- from the parser


def _commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            operands = [_values(operand) for operand in command._actions if not operand.option_strings]
            values = next((given for given in operands if given), ())
            yield Command(name, helps.get(name, ""), _options(command), values)


def _options(parser: argparse.ArgumentParser) -> tuple[Option, ...]:
    return tuple(
        Option(tuple(action.option_strings), _first_words(action), _values(action))
        for action in parser._actions
        if action.option_strings
    )


def _values(action: argparse.Action) -> tuple[str, ...] | None:
    if action.nargs == 0:
        return ()
    if action.choices is not None:
        return tuple(map(str, action.choices))
    return FILES if str(action.metavar or "").endswith("FILE") else None


def _first_words(action: argparse.Action) -> str:
    """Its help up to the first `:`, `;` or bracket, which shells give a meaning."""
    said = (action.help or "") % {"default": action.default, "prog": "cersql"}
    return re.split(r"[:;(\[]", said)[0].strip()


# ---------------------------------------------------------------- the scripts


def _bash(options: Sequence[Option], commands: Sequence[Command]) -> Iterator[str]:
    """Where nothing is offered `-o default` completes names of files, with their spaces and folders."""
    names = " ".join(command.name for command in commands)
    yield "# Completion of cersql in bash."
    yield "_cersql() {"
    yield "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i"
    yield "    for ((i = 1; i < COMP_CWORD; i++)); do"
    yield f'        case " {names} " in *" ${{COMP_WORDS[i]}} "*) command=${{COMP_WORDS[i]}}; break ;; esac'
    yield "    done"
    yield "    COMPREPLY=()"
    yield '    case "$command $prev" in'
    for values, places in _places(commands).items():
        yield f"        {'|'.join(map(_quoted, places))})"
        yield f"            {_bash_values(values)}; return ;;"
    yield '        *" =") return ;;'
    yield "    esac"
    yield '    case "$command" in'
    yield f"        '') {_bash_offers([names, *_flags(options)])} ;;"
    for command in commands:
        operands = command.operands if command.operands != FILES else ()
        offers = _bash_offers([*operands, *_flags(command.options)])
        yield f"        {command.name}) {offers if operands else f'[[ $cur != -* ]] || {offers}'} ;;"
    yield "    esac"
    yield "}"
    yield "complete -o default -F _cersql cersql"


def _places(commands: Sequence[Command]) -> dict[tuple[str, ...] | None, list[str]]:
    """What may follow an option, and behind which ones: {FILES: ["run --output", …], …}."""
    found: dict[tuple[str, ...] | None, list[str]] = {}
    for command in commands:
        for option in command.options:
            if option.values != ():
                places = found.setdefault(option.values, [])
                places += [f"{command.name} {flag}" for flag in option.flags]
    return found


def _bash_offers(words: Sequence[str]) -> str:
    return f'COMPREPLY=($(compgen -W {_quoted(" ".join(words))} -- "$cur"))'


def _bash_values(values: tuple[str, ...] | None) -> str:
    if values == FILES:
        return ":"
    return "compopt +o default 2>/dev/null" if values is None else _bash_offers(values)


def _zsh(options: Sequence[Option], commands: Sequence[Command]) -> Iterator[str]:
    yield "#compdef cersql"
    yield "_cersql() {"
    yield "    local -a commands=("
    for command in commands:
        yield f"        {_quoted(f'{command.name}:{command.help}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then"
    yield "        _describe command commands"
    yield f"        _arguments {' '.join(_zsh_option(option) for option in options)}"
    yield "        return"
    yield "    fi"
    yield "    local command=$words[2]"
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield "    case $command in"
    for command in commands:
        operands = f" {_quoted('*:' + _zsh_values('value', command.operands))}" if command.operands else ""
        yield f"        {command.name}) _arguments {' '.join(map(_zsh_option, command.options))}{operands} ;;"
    yield "    esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = _cersql ]; then _cersql "$@"; else compdef _cersql cersql; fi'


def _zsh_option(option: Option) -> str:
    """An option in each way to write it; `*` before it: it may be given again."""
    values = "" if option.values == () else f":{_zsh_values(option.flags[0].lstrip('-'), option.values)}"
    return " ".join(_quoted(f"*{flag}[{option.help}]{values}") for flag in option.flags)


def _zsh_values(what: str, values: tuple[str, ...] | None) -> str:
    if values == FILES:
        return f"{what}:_files"
    return f"{what}:" if values is None else f"{what}:({' '.join(values)})"


def _fish(options: Sequence[Option], commands: Sequence[Command]) -> Iterator[str]:
    yield "# Completion of cersql in fish."
    yield "complete -c cersql -f"
    for option in options:
        yield f"complete -c cersql -n __fish_use_subcommand{_fish_option(option)}"
    for command in commands:
        yield f"complete -c cersql -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}"
    for command in commands:
        seen = f"complete -c cersql -n {_quoted(f'__fish_seen_subcommand_from {command.name}')}"
        if command.operands:
            yield seen + (" -F" if command.operands == FILES else f" -a {_quoted(' '.join(command.operands))}")
        for option in command.options:
            yield seen + _fish_option(option)


def _fish_option(option: Option) -> str:
    flags = "".join(f" -{'l' if flag.startswith('--') else 's'} {flag.lstrip('-')}" for flag in option.flags)
    takes = "" if option.values == () else " -r -F" if option.values == FILES else " -x"
    values = f" -a {_quoted(' '.join(option.values))}" if option.values and option.values != FILES else ""
    return f"{flags}{takes}{values} -d {_quoted(option.help)}"


def _flags(options: Sequence[Option]) -> list[str]:
    return [flag for option in options for flag in option.flags]


def _quoted(text: str) -> str:
    """One word of any of the shells, which escape an apostrophe each in its own way."""
    return "'" + text.replace("'", "’") + "'"
