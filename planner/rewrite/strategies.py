"""Strategies that choose nothing are left out.

NXT(NXT(A ; B))      is   NXT(A ; B)
NOT NXT(A ; B) ; C   is   NOT (A ; B) ; C
"""

from __future__ import annotations

from dataclasses import replace

from planner import cel
from planner.across import Across
from planner.formula import Formula

AROUND_ABSENCE = (
    cel.As, cel.Filter, cel.FilterAny, cel.Compare, cel.Agree, Across, cel.Project, cel.NotAfter,
)  # fmt: skip


def without_choice_before(formula: Formula) -> Formula:
    """!NXT(ψ) before a match is !ψ: some match of ψ is the greatest wherever there is one. LAST and MAX likewise."""
    if isinstance(formula, cel.NotBefore):
        vetoes = []
        for veto in formula.vetoes:
            while isinstance(veto, cel.As) or (isinstance(veto, cel.Strategy) and veto.name != "STRICT"):
                veto = veto.inner
            vetoes.append(veto)
        return replace(formula, vetoes=tuple(vetoes), inner=without_choice_before(formula.inner))
    if isinstance(formula, AROUND_ABSENCE):
        return replace(formula, inner=without_choice_before(formula.inner))
    return formula


def choosing_once(formula: Formula) -> Formula:
    """Without strategies that leave what another one right inside them has left: NXT(NXT(φ)) is NXT(φ).

    What NXT or LAST leaves has the same positions, so that neither they nor MAX choose among it; what MAX leaves, no
    two of which one holds the other, MAX leaves as it is; and their greatest is in no other, so that NXT(MAX(φ)) is
    NXT(φ). Of STRICT's matches each choice is STRICT's again.
    """
    formula = formula.rebuilt(choosing_once)
    if not isinstance(formula, cel.Strategy):
        return formula
    name, inside, below = formula.name, set[str](), formula.inner
    while isinstance(below, cel.Strategy):
        inside.add(below.name)
        below = below.inner
    if name in inside or (name != "STRICT" and inside & {"NXT", "LAST"}):
        return formula.inner
    if name in ("NXT", "LAST") and isinstance(formula.inner, cel.Strategy) and formula.inner.name == "MAX":
        return replace(formula, inner=formula.inner.inner)
    return formula
