"""Spark's aggregate functions over the events of one match: each as an expression over an array of values.

`TABLE` has every aggregate function that is computed: how many arguments are read from events (the others are
constants, such as the percentage of PERCENTILE), and the function that writes it. `REFUSED` has the others, and why. A
test holds both together to Spark's own list, and each entry to Spark's own result over the same rows.

What an aggregate takes and gives (its types, implicit casts, wrong arguments) is asked of Spark's analyzer, which is
shown the call as it stands, over the columns. The folds repeat Spark's own formulas, step by step, so that the results
have the same digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.sql import Sql
from runtime.own import Own


@dataclass(frozen=True)
class Parts:
    """What an aggregate is computed from.

    `rows`: the text of an array with one element for every combination of events: the value itself, or a struct of
    `v1`, `v2`, … and of `k1`, `k2`, … (the keys of WITHIN GROUP) where there are several of them. `types`: Spark's
    types of the values, and `result` of the aggregate. `options`: the text of the constant arguments. `descending`,
    `last`: of each key, its direction, and whether NULLs come last.
    """

    function: str
    rows: str
    types: tuple[str, ...]
    result: str
    options: tuple[str, ...] = ()
    descending: tuple[bool, ...] = ()
    last: tuple[bool, ...] = ()
    distinct: bool = False
    ignore_nulls: bool = False

    @property
    def known(self) -> str:
        """The values, or the pairs of values, without those that are NULL; each once under DISTINCT."""
        names = [f"__v.v{k + 1}" for k in range(len(self.types))] if self.structs else ["__v"]
        test = " AND ".join(f"{name} IS NOT NULL" for name in names)
        return self.once(f"filter({self.rows}, __v -> {test})")

    def once(self, values: str) -> str:
        """Each value once, where that is asked. For DISTINCT -0.0 is 0.0."""
        if not self.distinct:
            return values
        if not self.structs and self.types[0] in ("double", "float"):
            values = f"transform({values}, __v -> __v + CAST(0 AS {self.types[0]}))"
        return f"array_distinct({values})"

    @property
    def structs(self) -> bool:
        return len(self.types) > 1 or bool(self.descending and self.function in _SORTED)


Build = Callable[[Parts], str]


@dataclass(frozen=True)
class Aggregate:
    """What is known of one function.

    `build` writes it over an array. `values`: so many arguments are read from events, None for any number; `options`:
    so many constants may follow; `of_key`: the value stands in WITHIN GROUP (ORDER BY …). `monoid`: its line in the
    table of runtime.monoids, with its lift, combine, lower and identity, by which runs hold it; None: it has none,
    since order or all values matter. `of_true`: it takes what is TRUE. `trend`: its line among the semirings of
    runtime.compact_set, by which it is summed up over matches that are not listed. `own`: the user's own. `asked`: what
    Spark's analyzer is asked instead, where it does not know the function; {} is the argument.
    """

    build: Build
    values: int | None = 1
    options: int = 0
    of_key: bool = False
    monoid: str | None = None
    of_true: bool = False
    trend: str | None = None
    own: Own | None = None
    asked: str | None = None

    def as_asked(self, arguments: Sql) -> Sql:
        """The call as Spark's analyzer can read it."""
        assert self.asked is not None
        first, *others = self.asked.split("{}")
        pieces = [(first, arguments.locate(0), False)]
        for after in others:
            pieces += [*arguments.pieces, (after, arguments.locate(0), False)]
        return Sql(tuple(pieces))


def let(value: str, name: str, body: str) -> str:
    """SQL that names a value, so that it is computed once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"


# ---------------------------------------------------------------- counting, choosing, collecting


def _count(p: Parts) -> str:
    return f"CAST(size({p.known}) AS BIGINT)"


def _count_if(p: Parts) -> str:
    return f"CAST(size(filter({p.known}, __t -> __t)) AS BIGINT)"


def _approximate_count(p: Parts) -> str:
    """Of the events of one match an estimate is no cheaper than the number."""
    return f"CAST(size(array_distinct({p.known})) AS BIGINT)"


def _least(p: Parts) -> str:
    return f"array_min({p.known})"


def _greatest(p: Parts) -> str:
    return f"array_max({p.known})"


def _range(p: Parts) -> str:
    return let(p.known, "__a", "array_max(__a) - array_min(__a)")


def _list(p: Parts) -> str:
    return p.known


def _set(p: Parts) -> str:
    return f"array_distinct({p.known})"


def _union(p: Parts) -> str:
    return f"array_distinct(filter(flatten({p.known}), __v -> __v IS NOT NULL))"


def _first(p: Parts) -> str:
    return f"get({_chosen_from(p)}, 0)"


def _last(p: Parts) -> str:
    return let(_chosen_from(p), "__a", "get(__a, size(__a) - 1)")


def _chosen_from(p: Parts) -> str:
    if p.ignore_nulls:
        return p.known
    return p.rows if not p.options else f"IF({p.options[0]}, {p.known}, {p.rows})"


def _by(sign: str) -> Build:
    """MAX_BY, MIN_BY: of equal ones the last, as in Spark; with a number, an array of so many."""

    def build(p: Parts) -> str:
        pairs = p.once(f"filter({p.rows}, __v -> __v.v2 IS NOT NULL)")
        if p.options:
            before, after = ("-1", "1") if sign == ">" else ("1", "-1")
            order = f"CASE WHEN __l.v2 > __r.v2 THEN {before} WHEN __l.v2 < __r.v2 THEN {after} ELSE 0 END"
            best = f"slice(array_sort(__a, (__l, __r) -> {order}), 1, {p.options[0]})"
            return let(pairs, "__a", f"IF(size(__a) = 0, NULL, transform({best}, __p -> __p.v1))")
        best = f"aggregate(__a, get(__a, 0), (__b, __p) -> IF(__b.v2 {sign} __p.v2, __b, __p))"
        return let(pairs, "__a", f"{best}.v1")

    return build


def _mode(p: Parts) -> str:
    """The most frequent value, of several the least (under DESC the greatest)."""
    more = ">=" if p.descending[:1] == (True,) else ">"
    times = "size(filter(__a, __w -> __w <=> __v))"
    best = (
        f"aggregate(array_sort(array_distinct(__a)), named_struct('n', 0, 'v', get(__a, 0)), "
        f"(__b, __v) -> IF({times} {more} __b.n, named_struct('n', {times}, 'v', __v), __b))"
    )
    return let(p.known, "__a", f"{best}.v")


def _top(p: Parts) -> str:
    """APPROX_TOP_K: the most frequent values and how often each occurs, exactly."""
    k = p.options[0] if p.options else "5"
    counted = "transform(array_distinct(__a), __v -> named_struct('item', __v, 'count', "
    counted += "CAST(size(filter(__a, __w -> __w <=> __v)) AS BIGINT)))"
    order = "(__l, __r) -> CASE WHEN __l.count > __r.count THEN -1 WHEN __l.count < __r.count THEN 1 ELSE 0 END"
    return let(p.once(p.rows), "__a", f"slice(array_sort({counted}, {order}), 1, {k})")


def _joined(p: Parts) -> str:
    """LISTAGG: the texts one after the other, in the order of WITHIN GROUP, else in that of the stream."""
    values = p.rows
    if p.structs:
        values = f"array_sort(filter({values}, __v -> __v.v1 IS NOT NULL), (__l, __r) -> {_comparison(p)})"
        values = f"transform({values}, __v -> __v.v1)"
        values = f"array_distinct({values})" if p.distinct else values
    else:
        values = p.known
    between = p.options[0] if p.options else "NULL"
    if p.types[0] == "binary":
        between = f"coalesce({between}, X'')"
        rest = (
            f"aggregate(slice(__a, 2, greatest(size(__a) - 1, 0)), get(__a, 0), (__s, __v) -> __s || {between} || __v)"
        )
        return let(values, "__a", rest)
    texts = values if p.types[0].startswith("string") else f"transform({values}, __v -> CAST(__v AS STRING))"
    return let(texts, "__a", f"IF(size(__a) = 0, NULL, array_join(__a, coalesce({between}, '')))")


def _comparison(p: Parts) -> str:
    """-1, 0 or 1 for two structs `__l` and `__r`, by their keys."""
    found = "0"
    for k, (descending, last) in reversed(list(enumerate(zip(p.descending, p.last, strict=True), 1))):
        null, less = ("1", "-1") if last else ("-1", "1"), ("1", "-1") if descending else ("-1", "1")
        found = (
            f"CASE WHEN __l.k{k} <=> __r.k{k} THEN {found} WHEN __l.k{k} IS NULL THEN {null[0]} "
            f"WHEN __r.k{k} IS NULL THEN {null[1]} WHEN __l.k{k} < __r.k{k} THEN {less[0]} ELSE {less[1]} END"
        )
    return found


# ---------------------------------------------------------------- sums and means


def _sum(p: Parts) -> str:
    return let(p.known, "__a", total(p.result, p.types[0], p.function == "TRY_SUM"))


def total(type: str, value: str, safe: bool = False) -> str:
    """The sum of the array `__a`, of values of a type, in the type of the result; NULL if it is empty. `safe`: NULL,
    too, where it leaves that type.

    Spark's sum of DOUBLE begins with 0.0, which makes 0.0 of -0.0.
    """
    kind, precision, scale = decimal(type)
    if kind and precision == 38 and 6 < scale < 28:
        return _wide_total(type, scale, "try_cast" if safe else "CAST")
    first = "CAST(get(__a, 0) AS DOUBLE) + 0.0D" if type == "double" else f"CAST(get(__a, 0) AS {type})"
    plus = f"CAST(__s + __v AS {type})"
    if safe:
        plus = f"try_cast(try_add(__s, __v) AS {type})" if kind else f"try_add(__s, CAST(__v AS {type}))"
    return f"aggregate(slice(__a, 2, greatest(size(__a) - 1, 0)), {first}, (__s, __v) -> {plus})"


def _wide_total(type: str, scale: int, cast: str) -> str:
    """The sum of decimals of 38 digits: where both sides have that many, Spark's + drops the last one after the point,
    and its SUM does not. So what stands before and after the point is summed apart, and put together as text."""
    whole = "aggregate(__a, CAST(0 AS DECIMAL(38,0)), (__s, __v) -> CAST(__s + floor(__v) AS DECIMAL(38,0)))"
    small = f"DECIMAL({scale + 11},{scale})"
    part = f"aggregate(__a, CAST(0 AS {small}), (__s, __v) -> CAST(__s + pmod(__v, 1BD) AS {small}))"
    # Below zero -4.75 was taken apart into -5 and 0.25.
    below = "__w.w + floor(__w.p) < 0 AND pmod(__w.p, 1BD) > 0"
    before = f"CAST(__w.w + floor(__w.p) + IF({below}, 1, 0) AS DECIMAL(38,0))"
    after = f"IF({below}, CAST(1BD - pmod(__w.p, 1BD) AS DECIMAL({scale + 1},{scale})), pmod(__w.p, 1BD))"
    digits = f"lpad(CAST(CAST({after} * {10**scale}BD AS DECIMAL(38,0)) AS STRING), {scale}, '0')"
    text = f"concat(IF({below}, '-', ''), CAST(abs({before}) AS STRING), '.', {digits})"
    text = f"IF({before} < 0 AND NOT ({below}), concat('-', {text}), {text})"
    apart = f"named_struct('w', {whole}, 'p', {part})"
    return f"IF(size(__a) = 0, NULL, {let(apart, '__w', f'{cast}({text} AS {type})')})"


def decimal(type: str) -> tuple[bool, int, int]:
    """Is it a decimal type, and its precision and scale."""
    base, _, arguments = type.lower().partition("(")
    if base != "decimal":
        return False, 0, 0
    precision, scale = arguments.rstrip(")").split(",")
    return True, int(precision), int(scale)


def _mean(p: Parts) -> str:
    return let(p.known, "__a", mean(p.types[0], p.result, p.function == "TRY_AVG"))


def mean(value: str, type: str, safe: bool = False) -> str:
    """The mean of the array `__a`; NULL if it is empty."""
    kind, _, _ = decimal(type)
    is_decimal, precision, scale = decimal(value)
    if kind and is_decimal:
        summed = f"decimal({min(38, precision + 10)},{scale})"
        return let(total(summed, value, safe), "__s", _decimal_mean(summed, type))
    summed = type if type.startswith("interval") else "double"
    divided = f"{total(summed, value, safe)} / nullif(size(__a), 0)"
    return f"{'try_cast' if safe else 'CAST'}({divided} AS {type})"


def _decimal_mean(total: str, mean: str) -> str:
    """`__s`, the sum, by the size of `__a`, with every digit of the mean's type.

    Spark's division keeps the whole digits that its operands' types allow, if need be at the cost of the others. Where
    that would cost digits of the mean, what is left of a division by whole numbers is divided apart: it is smaller than
    the number of events.
    """
    _, digits, places = decimal(total)
    _, precision, scale = decimal(mean)
    size = "nullif(size(__a), 0)"
    if min(38 - (digits - places), places + 21) > scale:
        return f"CAST(__s / CAST({size} AS DECIMAL(20,0)) AS {mean})"
    n = f"CAST({size} AS DECIMAL(10,0))"
    rest = f"pmod(__s, {n})"  # without it the sum is a multiple, a whole number
    whole = f"CAST(CAST(__s - {rest} AS DECIMAL(38,0)) / {n} AS DECIMAL({precision - 1},{scale}))"
    small = f"CAST({rest} / {n} AS DECIMAL({min(38, scale + 1)},{scale}))"
    return f"CAST({whole} + {small} AS {mean})"


def _product(p: Parts) -> str:
    """As pyspark's functions.product: of DOUBLEs, NULL over none."""
    return let(p.known, "__a", "IF(size(__a) = 0, NULL, aggregate(__a, 1D, (__s, __v) -> __s * CAST(__v AS DOUBLE)))")


def _bits(operator: str) -> Build:
    def build(p: Parts) -> str:
        folded = f"aggregate(slice(__a, 2, greatest(size(__a) - 1, 0)), get(__a, 0), (__s, __v) -> __s {operator} __v)"
        return let(p.known, "__a", folded)

    return build


def _vector(p: Parts) -> str:
    """VECTOR_SUM, VECTOR_AVG: element by element."""
    plus = "CAST(__s.x + __v AS FLOAT)" if p.function == "VECTOR_SUM" else ""
    if p.function == "VECTOR_SUM":
        plus = "zip_with(__s, __v, (__x, __y) -> CAST(__x + __y AS FLOAT))"
        return let(p.known, "__a", f"aggregate(slice(__a, 2, greatest(size(__a) - 1, 0)), get(__a, 0), "
                                   f"(__s, __v) -> {plus})")  # fmt: skip
    step = "zip_with(__s.m, __v, (__x, __y) -> CAST(__x + (__y - __x) / (__s.n + 1) AS FLOAT))"
    first = "named_struct('n', 1, 'm', get(__a, 0))"
    return let(p.known, "__a", f"aggregate(slice(__a, 2, greatest(size(__a) - 1, 0)), {first}, "
                               f"(__s, __v) -> named_struct('n', __s.n + 1, 'm', {step})).m")  # fmt: skip


# ---------------------------------------------------------------- percentiles


def _percentile(p: Parts) -> str:
    """PERCENTILE, MEDIAN, PERCENTILE_CONT: between two values in proportion. PERCENTILE_DISC, APPROX_PERCENTILE: one of
    the values; of the events of one match an estimate is no cheaper than that."""
    values, of = p.known, p.types[0]
    if p.function == "PERCENTILE" and len(p.types) == 2:
        often = "IF(__v.v2 < 0, raise_error('Negative values found in the frequency of PERCENTILE.'), __v.v2)"
        values = f"flatten(transform({values}, __v -> array_repeat(__v.v1, CAST({often} AS INT))))"
    exact = p.function in ("PERCENTILE_DISC", "APPROX_PERCENTILE", "PERCENTILE_APPROX")
    several = p.result.startswith("array")
    result = p.result[len("array<") : -1] if several else p.result
    ordered = f"array_sort({values})"
    if p.descending[:1] == (True,):
        ordered = f"reverse({ordered})"
    at = p.options[0] if p.options else "0.5"
    if exact:
        one = f"CAST(get(__a, greatest(CAST(ceil(size(__a) * CAST(__q AS DOUBLE)) AS INT), 1) - 1) AS {result})"
    else:
        ordered = f"transform({ordered}, __v -> {_as_number('__v', of)})"
        lower, upper = (f"get(__a, CAST({side}(__p) AS INT))" for side in ("floor", "ceil"))
        between = f"IF({lower} = {upper}, {lower}, (ceil(__p) - __p) * {lower} + (__p - floor(__p)) * {upper})"
        one = let("(size(__a) - 1) * CAST(__q AS DOUBLE)", "__p", _from_number(between, result))
    found = f"transform({at}, __q -> {one})" if several else let(at, "__q", one)
    return let(ordered, "__a", f"IF(size(__a) = 0, NULL, {found})")


def _as_number(value: str, type: str) -> str:
    """A value that percentiles are taken of as a DOUBLE: of intervals the months, or the microseconds, as of a TIME."""
    if type.startswith("interval") and ("month" in type or "year" in type):
        return f"CAST(CAST(CAST({value} AS INTERVAL MONTH) AS INT) AS DOUBLE)"
    if type.startswith("interval"):
        return f"CAST(CAST(CAST({value} AS INTERVAL SECOND) AS DECIMAL(18,6)) * 1000000 AS DOUBLE)"
    if type.startswith("time("):
        return f"CAST(time_to_micros({value}) AS DOUBLE)"
    return f"CAST({value} AS DOUBLE)"


def _from_number(number: str, type: str) -> str:
    if type.startswith("interval") and ("month" in type or "year" in type):
        return f"CAST(make_ym_interval(0, CAST({number} AS INT)) AS {type})"
    if type.startswith("interval"):
        seconds = f"CAST(CAST({number} AS BIGINT) AS DECIMAL(24,6)) / 1000000"
        return f"CAST(make_dt_interval(0, 0, 0, CAST({seconds} AS DECIMAL(18,6))) AS {type})"
    if type.startswith("time("):
        return f"CAST(time_from_micros(CAST({number} AS BIGINT)) AS {type})"
    return f"CAST({number} AS {type})"


# ---------------------------------------------------------------- moments


def _moments(finish: str) -> Build:
    """Of one variable: n, the mean, and the sums of the second to fourth powers of what lies off it."""
    d, n = "(CAST(__v AS DOUBLE) - __s.m)", "(__s.n + 1D)"
    dn = f"({d} / {n})"
    m2 = f"(__s.m2 + {d} * ({d} - {dn}))"
    m3 = f"(__s.m3 - 3D * {dn} * {m2} + {d} * ({d} * {d} - {dn} * {dn}))"
    m4 = f"(__s.m4 - 4D * {dn} * {m3} - 6D * ({dn} * {dn}) * {m2} + {d} * ({d} * ({d} * {d}) - {dn} * ({dn} * {dn})))"
    steps = {"n": n, "m": f"__s.m + {dn}", "m2": m2, "m3": m3, "m4": m4}
    wanted = ["n", "m", "m2", *(name for name in ("m3", "m4") if name in finish or "m4" in finish)]
    zero = ", ".join(f"'{name}', 0D" for name in wanted)
    step = ", ".join(f"'{name}', {steps[name]}" for name in wanted)
    fold = f"(__s, __v) -> named_struct({step}), __s -> {finish}"

    def build(p: Parts) -> str:
        return f"aggregate({p.known}, named_struct({zero}), {fold})"

    return build


def _co_moments(finish: str) -> Build:
    """Of two variables: n, their means, and the sums of products of what lies off them."""
    n, x, y = "(__s.n + 1D)", "CAST(__v.v1 AS DOUBLE)", "CAST(__v.v2 AS DOUBLE)"
    mx, my = f"(__s.mx + ({x} - __s.mx) / {n})", f"(__s.my + ({y} - __s.my) / {n})"
    steps = {
        "n": n, "mx": mx, "my": my,
        "xy": f"__s.xy + ({x} - __s.mx) * ({y} - {my})",
        "xx": f"__s.xx + ({x} - __s.mx) * ({x} - {mx})",
        "yy": f"__s.yy + ({y} - __s.my) * ({y} - {my})",
    }  # fmt: skip
    zero = ", ".join(f"'{name}', 0D" for name in steps)
    step = ", ".join(f"'{name}', {sql}" for name, sql in steps.items())
    fold = f"(__s, __v) -> named_struct({step}), __s -> {finish}"

    def build(p: Parts) -> str:
        return f"aggregate({p.known}, named_struct({zero}), {fold})"

    return build


def _regression_mean(which: int) -> Build:
    """REGR_AVGX, REGR_AVGY: the mean of one argument where both are known."""

    def build(p: Parts) -> str:
        values = f"transform({p.known}, __v -> __v.v{which})"
        return let(values, "__a", mean(p.types[which - 1], p.result))

    return build


_SOME = "IF(__s.n = 0D, NULL, {})"
_MORE = "IF(__s.n < 2D, NULL, {})"
_STDDEV_SAMP = Aggregate(_moments(_MORE.format("sqrt(__s.m2 / (__s.n - 1D))")), monoid="STDDEV_SAMP")
_VAR_SAMP = Aggregate(_moments(_MORE.format("__s.m2 / (__s.n - 1D)")), monoid="VAR_SAMP")
_SKEWNESS = "IF(__s.m2 = 0D, NULL, sqrt(__s.n) * __s.m3 / sqrt(__s.m2 * __s.m2 * __s.m2))"
_KURTOSIS = "IF(__s.m2 = 0D, NULL, __s.n * __s.m4 / (__s.m2 * __s.m2) - 3D)"
_CORRELATION = "IF(__s.xx * __s.yy = 0D, NULL, __s.xy / sqrt(__s.xx * __s.yy))"
# REGR_…(y, x): of the two values x is the second.
_R2 = "CASE WHEN __s.yy = 0D THEN NULL WHEN __s.xx = 0D THEN 1D ELSE __s.xy * __s.xy / __s.xx / __s.yy END"
_SLOPE = "IF(__s.yy = 0D, NULL, __s.xy / __s.yy)"
_INTERCEPT = "IF(__s.yy = 0D, NULL, __s.mx - __s.xy / __s.yy * __s.my)"


# ---------------------------------------------------------------- the table

_COLLECT = Aggregate(_list)
_ALL_TRUE, _ANY_TRUE = Aggregate(_least, monoid="MIN"), Aggregate(_greatest, monoid="MAX")
_FIRST, _LAST = Aggregate(_first, options=1), Aggregate(_last, options=1)
_LISTAGG = Aggregate(_joined, options=1)
_MEAN = Aggregate(_mean, monoid="AVG", trend="AVG")
_APPROXIMATE = Aggregate(_percentile, options=2)
_SORTED = frozenset({"LISTAGG", "STRING_AGG"})  # whose WITHIN GROUP orders other values than it names

TABLE: Mapping[str, Aggregate] = MappingProxyType({
    "COUNT": Aggregate(_count, values=None, monoid="COUNT", trend="COUNT"),
    "COUNT_IF": Aggregate(_count_if, monoid="COUNT", of_true=True),
    "APPROX_COUNT_DISTINCT": Aggregate(_approximate_count, options=1, monoid="COUNT DISTINCT"),
    "MIN": Aggregate(_least, monoid="MIN", trend="MIN"),
    "MAX": Aggregate(_greatest, monoid="MAX", trend="MAX"),
    "RANGE": Aggregate(_range, monoid="RANGE", asked="(max({}) - min({}))"),
    "PRODUCT": Aggregate(_product, monoid="PRODUCT", asked="sum(CAST({} AS DOUBLE))"),
    "BOOL_AND": _ALL_TRUE, "EVERY": _ALL_TRUE,
    "BOOL_OR": _ANY_TRUE, "SOME": _ANY_TRUE, "ANY": _ANY_TRUE,
    "MIN_BY": Aggregate(_by("<"), values=2, options=1, monoid="MIN_BY"),
    "MAX_BY": Aggregate(_by(">"), values=2, options=1, monoid="MAX_BY"),
    "FIRST": _FIRST, "FIRST_VALUE": _FIRST, "ANY_VALUE": _FIRST,
    "LAST": _LAST, "LAST_VALUE": _LAST,
    "MODE": Aggregate(_mode, options=1),
    "APPROX_TOP_K": Aggregate(_top, options=2),
    "COLLECT_LIST": _COLLECT, "ARRAY_AGG": _COLLECT,
    "COLLECT_SET": Aggregate(_set),
    "COLLECT_UNION": Aggregate(_union),
    "LISTAGG": _LISTAGG, "STRING_AGG": _LISTAGG,
    "SUM": Aggregate(_sum, monoid="SUM", trend="SUM"), "TRY_SUM": Aggregate(_sum),
    "AVG": _MEAN, "MEAN": _MEAN, "TRY_AVG": Aggregate(_mean),
    "VECTOR_SUM": Aggregate(_vector), "VECTOR_AVG": Aggregate(_vector),
    "BIT_AND": Aggregate(_bits("&"), monoid="BIT_AND"),
    "BIT_OR": Aggregate(_bits("|"), monoid="BIT_OR"),
    "BIT_XOR": Aggregate(_bits("^"), monoid="BIT_XOR"),
    "MEDIAN": Aggregate(_percentile, monoid="MEDIAN"),
    "PERCENTILE": Aggregate(_percentile, options=2),
    "PERCENTILE_CONT": Aggregate(_percentile, options=1, of_key=True),
    "PERCENTILE_DISC": Aggregate(_percentile, options=1, of_key=True),
    "APPROX_PERCENTILE": _APPROXIMATE, "PERCENTILE_APPROX": _APPROXIMATE,
    "STDDEV": _STDDEV_SAMP, "STD": _STDDEV_SAMP, "STDDEV_SAMP": _STDDEV_SAMP,
    "STDDEV_POP": Aggregate(_moments(_SOME.format("sqrt(__s.m2 / __s.n)")), monoid="STDDEV_POP"),
    "VARIANCE": _VAR_SAMP, "VAR_SAMP": _VAR_SAMP,
    "VAR_POP": Aggregate(_moments(_SOME.format("__s.m2 / __s.n")), monoid="VAR_POP"),
    "SKEWNESS": Aggregate(_moments(_SOME.format(_SKEWNESS))),
    "KURTOSIS": Aggregate(_moments(_SOME.format(_KURTOSIS))),
    "CORR": Aggregate(_co_moments(_MORE.format(_CORRELATION)), values=2),
    "COVAR_POP": Aggregate(_co_moments(_SOME.format("__s.xy / __s.n")), values=2),
    "COVAR_SAMP": Aggregate(_co_moments(_MORE.format("__s.xy / (__s.n - 1D)")), values=2),
    "REGR_COUNT": Aggregate(_count, values=2),
    "REGR_AVGX": Aggregate(_regression_mean(2), values=2),
    "REGR_AVGY": Aggregate(_regression_mean(1), values=2),
    "REGR_SXX": Aggregate(_co_moments(_SOME.format("__s.yy")), values=2),
    "REGR_SXY": Aggregate(_co_moments(_SOME.format("__s.xy")), values=2),
    "REGR_SYY": Aggregate(_co_moments(_SOME.format("__s.xx")), values=2),
    "REGR_R2": Aggregate(_co_moments(_SOME.format(_R2)), values=2),
    "REGR_SLOPE": Aggregate(_co_moments(_SOME.format(_SLOPE)), values=2),
    "REGR_INTERCEPT": Aggregate(_co_moments(_SOME.format(_INTERCEPT)), values=2),
})  # fmt: skip

_SKETCH = "Its sketch is made by Spark's GROUP BY only."
_GROUPS = "It speaks of the groups of a GROUP BY."
_STREAMED = "Its result depends on how Spark cuts the rows up."

REFUSED: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(
        (
            "APPROX_TOP_K_ACCUMULATE", "APPROX_TOP_K_COMBINE", "BITMAP_AND_AGG", "BITMAP_CONSTRUCT_AGG",
            "BITMAP_OR_AGG", "COUNT_MIN_SKETCH", "HLL_SKETCH_AGG", "HLL_UNION_AGG", "KLL_MERGE_AGG_BIGINT",
            "KLL_MERGE_AGG_DOUBLE", "KLL_MERGE_AGG_FLOAT", "KLL_SKETCH_AGG_BIGINT", "KLL_SKETCH_AGG_DOUBLE",
            "KLL_SKETCH_AGG_FLOAT", "THETA_INTERSECTION_AGG", "THETA_SKETCH_AGG", "THETA_UNION_AGG",
            "TUPLE_INTERSECTION_AGG_DOUBLE", "TUPLE_INTERSECTION_AGG_INTEGER", "TUPLE_SKETCH_AGG_DOUBLE",
            "TUPLE_SKETCH_AGG_INTEGER", "TUPLE_UNION_AGG_DOUBLE", "TUPLE_UNION_AGG_INTEGER",
        ),
        _SKETCH,
    ),
    "GROUPING": _GROUPS, "GROUPING_ID": _GROUPS, "MEASURE": "It speaks of the measures of a metric view.",
    "HISTOGRAM_NUMERIC": _STREAMED, "SCHEMA_OF_VARIANT_AGG": "Its type is found by Spark's GROUP BY only.",
})  # fmt: skip
