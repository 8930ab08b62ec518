"""What is said of several events together: `[k]`, `x[a]` and PART BY, the columns on which they agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cersql.binding.clause import Agreement
from cersql.binding.expressions import Bare, Node, Ref, Together, Word, read
from cersql.binding.references import References
from cersql.binding.scope import Names, display, unknown_column
from cersql.errors import BindError
from cersql.language.lexer import strip_quotes
from cersql.language.syntax import Text
from planner.sql import Sql
from runtime.errors import Span

_IN_BRACKETS = "Write columns, or expressions over them, with commas between them: [driver, rider]."


class Agreements(References):
    """Lowers them."""

    def agreements(self, node: Together, in_scope: frozenset[str]) -> list[Agreement]:
        """What agrees in `[a, b]` and `x[a, b]`: columns, and expressions over one row; no name there is a variable's.
        `in_scope` are the variables that they must be of, with what must not happen among them."""
        variable = None if node.of is None else node.of.variable
        marks = [variable] if variable is not None else [*in_scope, *self.scope.names.negated]
        marks = [mark for mark in marks if mark not in self.created]  # [k] asks of events of the stream
        every = [*self.scope.names.order, *self.scope.names.negated]
        marks = sorted(set(marks), key=lambda mark: (mark not in every, every.index(mark) if mark in every else 0))
        return [self._agreement(item, node, marks) for item in node.items if node.kind == "AGREE"]

    def _agreement(self, item: tuple[Node, ...], node: Together, marks: Sequence[str]) -> Agreement:
        variable = None if node.of is None else node.of.variable
        if not item or (isinstance(item[0], Word) and item[0].upper == "["):
            at = item[0].span if item else node.span
            raise BindError("NOT_SUPPORTED_YET", span=at, construct="This in [ ]", hint=_IN_BRACKETS)
        for part in item:
            of_event = isinstance(part, Ref) and part.column is not None and self.stream.find(part.written) is None
            if of_event or (isinstance(part, Word) and part.upper in ("AND", "OR")):
                raise BindError("NOT_SUPPORTED_YET", span=part.span, construct="This in [ ]", hint=_IN_BRACKETS)
        sources = sorted({i for mark in marks for i in self.sources_of(mark)})
        span = item[0].span | item[-1].span
        toks = self.text.within(span)
        if len(toks) == 1 and toks[0].is_name:
            name = self._shared_name(strip_quotes(toks[0].text), span, marks, variable)
            found = Agreement(self.keys.named(name, span, span, "[ ]", sources), name, span, variable)
        else:
            written = Text(self.text[span.start : span.end], span)
            found = Agreement(self.keys.expression(written, "[ ]", sources)[0], None, span, variable)
        self.reads.add(found.column.name)
        return found

    def agreed_columns(self, node: Together) -> list[str]:
        """The columns of `[a, b]` and `x[a, b]`."""
        found = []
        for agreement in self.agreements(node, frozenset(self.scope.names.order)):
            if agreement.name is None:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=agreement.span,
                    construct="An expression in [ ] beside what is asked of the match",
                    hint="Make it a column of the source: FROM (SELECT *, f(x) AS y FROM t) AS t.",
                )  # fmt: skip
            found.append(agreement.name)
        return found

    def _shared_name(self, name: str, span: Span, marks: Iterable[str], variable: str | None) -> str:
        """A column that all events of some variables have."""
        if self.stream.find(name) is None:
            raise unknown_column(name, span, "the sources", self.stream.names)
        for mark in marks:
            known = self.all_columns_of(mark) if variable is None else self.columns_of(mark)
            own = Names(known, self.scope.case_sensitive).get(name)
            if own is None or any(self.stream.own(name, i) is None for i in self.sources_of(mark)):
                error = unknown_column(name, span, display(mark), known)
                if variable is None:
                    error.hint = f"[{name}] asks of every event, also of {display(mark)}. {error.hint}"
                raise error
        return name

    def part_by_keys(self, keys: Text, in_scope: frozenset[str]) -> list[Agreement] | None:
        """`a, b` of PART BY (a, b): what all events agree on; None if it is `x.a, y.b`, one for each variable."""
        nodes = read(self.text, keys.span, lambda name: None, self.scope.fold)
        names = [node for node in nodes if isinstance(node, Bare)]
        of_variables = [len(node.names) > 1 and self.scope.variable(node.names[0]) is not None for node in names]
        if not names or any(of_variables) or len(names) * 2 - 1 != len(nodes):
            return None
        together = Together("AGREE", tuple((name,) for name in names), None, keys.span)
        return self.agreements(together, in_scope)

    def attributes(
        self, keys: Text, in_scope: frozenset[str]
    ) -> tuple[tuple[tuple[str | None, str], ...], tuple[Sql, ...]]:
        """`x.a, y.b` as (variable, SQL), and the same with their places."""
        nodes = self.nodes(keys, in_scope)
        found: list[tuple[str | None, str]] = []
        shown = []
        for k, node in enumerate(nodes):
            if k % 2 and isinstance(node, Word) and node.upper == ",":
                continue
            if k % 2 or not isinstance(node, Ref) or node.index is not None or node.condition is not None:
                hint = "Write attributes with commas between them: PART BY (x.a, y.b)."
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct="This in PART BY", hint=hint)
            sql = self.row_sql([node])
            found.append((node.variable, sql.text))
            shown.append(sql)
        return tuple(found), tuple(shown)
