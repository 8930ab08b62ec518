"""An absence after the match stands outermost, where it asks what its window says.

(A ; B ; NOT C WITHIN 5) AS x   is   NotAfter(C, (A ; B) AS x)
"""

from __future__ import annotations

from dataclasses import replace

from planner import cel
from planner.across import Across
from planner.formula import Formula
from planner.rewrite.across import holds


def absence_outside(formula: Formula) -> Formula:
    """The absence after the match as the outermost operator; what stands around it does not change what it asks."""
    match formula:
        case cel.As() | cel.Filter() | cel.FilterAny() | cel.Project() | cel.NotBefore() | cel.Compare() | cel.Agree():
            inner = absence_outside(formula.inner)
            if isinstance(inner, cel.NotAfter):
                return replace(inner, inner=replace(formula, inner=inner.inner))
            if isinstance(inner, Across) and inner.inner.contains((cel.NotAfter,)):  # with which it compares
                if isinstance(formula, cel.Project):  # may hide what is compared, so it goes around
                    return replace(formula, inner=inner)
                return replace(inner, inner=absence_outside(replace(formula, inner=inner.inner)))
            return replace(formula, inner=inner)
        case Across():
            inner = absence_outside(formula.inner)
            if isinstance(inner, cel.NotAfter) and not any(holds(veto, formula.number) for veto in inner.vetoes):
                return replace(inner, inner=replace(formula, inner=inner.inner))
            return replace(formula, inner=inner)
    return formula
