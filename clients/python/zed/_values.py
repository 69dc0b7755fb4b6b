"""Numbers as both the metrics file and the protocol write them."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Dict, Mapping, Union

Number = Union[int, float, str]  #: the strings are "NaN", "Infinity" and "-Infinity"

_LARGEST_INTEGER = (1 << 63) - 1
_isfinite = math.isfinite


def to_number(value: Any) -> Number:
    """Any real number (numpy scalar, one-element tensor, …) in its JSON form. JSON has no NaN, so
    that and the infinities are strings. Raises TypeError for what is no number."""
    if type(value) is float:  # what follows costs five times as much
        return value if _isfinite(value) else _from_float(value)
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{value!r} is not a number")
    try:
        whole = operator.index(value)
    except TypeError:
        return _from_float(_to_float(value))
    return whole if abs(whole) <= _LARGEST_INTEGER else _from_float(_to_float(whole))


def to_numbers(metrics: Mapping[str, Any], refuse: Callable[[str, str], None]) -> Dict[str, Number]:
    """Those of `metrics` that are numbers; `refuse(name, why)` hears of the others."""
    numbers: Dict[str, Number] = {}
    for name, value in metrics.items():
        if type(value) is float and _isfinite(value):  # nearly always
            numbers[name] = value
            continue
        try:
            numbers[name] = to_number(value)
        except TypeError as error:
            refuse(name, str(error))
    return numbers


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception as error:  # a tensor of many elements raises its library's own kind
        raise TypeError(f"{type(value).__name__} is not a number: {error}") from None


def _from_float(value: float) -> Number:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
