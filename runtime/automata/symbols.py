"""Symbols to classes: small integers for the symbols that occur, 0 for the symbol 0 (no guard satisfied)."""

from __future__ import annotations

import numpy as np

from runtime.arrays import AnyArray
from runtime.errors import ExecutionError

DIRECT_BITS = 16  # up to here an array of 2^bits classes is looked up directly
MAX_CLASSES = 65_536


class Classes:
    """The classes met so far. `symbols[k]` is the symbol of class k, as a tuple of words."""

    def __init__(self, n_guards: int, words: int) -> None:
        self._words = words
        self._direct = np.full(1 << n_guards, -1, np.int32) if n_guards <= DIRECT_BITS else None
        self._known: dict[tuple[int, ...], int] = {}
        self.symbols: list[tuple[int, ...]] = []
        self._add((0,) * words)

    def _add(self, symbol: tuple[int, ...]) -> int:
        if symbol not in self._known:
            if len(self.symbols) >= MAX_CLASSES:
                raise ExecutionError(
                    "SYMBOL_LIMIT",
                    found=len(self.symbols) + 1,
                    limit=MAX_CLASSES,
                    hint="Use fewer independent conditions in one pattern.",
                )
            self._known[symbol] = len(self.symbols)
            if self._direct is not None:
                self._direct[symbol[0]] = len(self.symbols)
            self.symbols.append(symbol)
        return self._known[symbol]

    def of(self, symbols: AnyArray) -> AnyArray:
        """int32[n] classes of symbols int64[n] (or int64[n, words]). One look-up a row; more beyond 16 guards."""
        if self._direct is not None:
            classes = self._direct[symbols.reshape(len(symbols))]
            if len(classes) and classes.min() < 0:
                for symbol in np.unique(symbols[classes < 0]).tolist():
                    self._add((symbol,))
                classes = self._direct[symbols.reshape(len(symbols))]
            return classes
        table = symbols.reshape(len(symbols), self._words)
        distinct, inverse = np.unique(table, axis=0, return_inverse=True)
        numbers = np.array([self._add(tuple(symbol)) for symbol in distinct.tolist()], np.int32)
        return numbers[inverse.reshape(-1)] if len(numbers) else np.zeros(0, np.int32)
