"""Borders of a delegate: which values of a call are which inputs and outputs of the delegate.

A call has a value for every input and output that the delegate had when the program was divided.
Then the exporter simplifies the delegate and writes these anew, in the same order, but:

* An input that no operator reads any more is left out.
* An output that is a copy of another output is the same value, which is listed once.

The file does not say which ones. The order is known, and sizes and dtypes have to agree. Of inputs
it is also known which ones the program overwrites later ([overwrites](overwrites.py)), and of which
ones the data decide the size ([counts](counts.py)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.symbols import Symbol
from vkrt.pte import SymInt
from vkrt.work.tensor import Tensor, device_dtype


def choices(inner: int, outer: int, fits: Callable[[int, int], bool],
            others: Callable[[int, int], Iterable[int | None]]) -> list[set[int | None]]:
    """For each value of a call, the numbers of the delegate's values that it may be, such that all
    other values have a choice, too: empty sets where there are none. The first uses of the
    delegate's values are in the order of their numbers.

    Args:
        inner, outer: how many values the delegate and the call have.
        fits: gets numbers of a value of the delegate and of the call; whether they may be the same.
        others: gets how many of the delegate's values stand before a value of the call, and the
            number of the latter. What it may be instead of the delegate's next value: one of those
            before it again, or None for a value that the delegate does not have.
    """
    def steps(place: int, used: int) -> Iterator[tuple[int | None, int]]:
        """(choice, number of the delegate's values used then) for the call's value `place`."""
        if used < inner and fits(used, place):
            yield used, used + 1
        for other in others(used, place):
            if other is None or fits(other, place):
                yield other, used

    # For each place: with how many values used before it all of them can be used by the end
    ends = [set[int]() for _ in range(outer)] + [{inner}]
    for place in reversed(range(outer)):
        few, many = max(0, inner - (outer - place)), min(inner, place)
        ends[place] = {used for used in range(few, many + 1)
                       if any(after in ends[place + 1] for _, after in steps(place, used))}
    result: list[set[int | None]] = []
    begun = {0} & ends[0]
    for place in range(outer):
        ways = [way for used in begun for way in steps(place, used) if way[1] in ends[place + 1]]
        result.append({choice for choice, _ in ways})
        begun = {after for _, after in ways}
    return result


def fits(inner: Any, outer: Any) -> bool:
    """Whether a value of a delegate may be the one that the program has at its border."""
    if not isinstance(inner, Tensor):
        # A symbolic integer may be a tensor of one element outside.
        return isinstance(inner, (int, Symbol, SymInt)) and (
            not isinstance(outer, Tensor) or outer.numel == 1)
    if not isinstance(outer, Tensor):
        return False
    one = inner.numel == outer.numel == 1
    # A constant does not have a border's dtype: with force_fp16 its dtype is not the program's.
    same = (inner.constant is not None
            or device_dtype(inner.host_dtype) == device_dtype(outer.host_dtype))
    return same and (one or inner.sizes == outer.sizes)


def match_inputs(inner: list[Any], outer: list[Any], label: str,
                 may_lack: Callable[[int, int], bool] = lambda _place, _read: False) -> list[int]:
    """For each of a delegate's inputs the number of the call's value that it is.

    Args:
        may_lack: gets the number of a value of the call, and how many of the delegate's inputs
            stand before it. Whether the program has a reason to leave the value out
            (`vkrt.graph.overwrites`, `vkrt.graph.counts`); asked where sizes and dtypes leave a
            doubt. By default no value may be left out.

    Raises:
        UnsupportedError: the file does not say.
    """
    def fit(i: int, o: int) -> bool:
        return fits(inner[i], outer[o])

    found = choices(len(inner), len(outer), fit, lambda _used, _place: (None,))
    if any(len(each) > 1 for each in found):
        # A value that can only be left out, such as a number, needs no reason.
        known = choices(len(inner), len(outer), fit, lambda used, place: (
            (None,) if found[place] == {None} or may_lack(place, used) else ()))
        found = known if all(len(each) == 1 for each in known) else found
    if any(len(each) != 1 for each in found):
        raise UnsupportedError(
            f"{label}: it reads {len(inner)} of the {len(outer)} values that the call passes "
            "(the exporter leaves out inputs that are overwritten as a whole before anything "
            "reads them, or of which it has only asserted the size), and the file does not say "
            f"which{_doubt(found, outer)}; export the program without the use of the value that is "
            "never read")
    return [number for number, each in enumerate(found) if each != {None}]


def match_outputs(inner: list[Any], outer: list[Any], label: str) -> list[int]:
    """For each value that a call takes from a delegate the number of the output that it is.

    Raises:
        UnsupportedError: the file does not say.
    """
    found = choices(len(inner), len(outer), lambda i, o: fits(inner[i], outer[o]),
                    lambda used, _place: range(used))
    if any(len(each) != 1 for each in found):
        raise UnsupportedError(
            f"{label}: the call takes {len(outer)} outputs from it and it has {len(inner)}: some "
            "are one value (the exporter removes copies), and the file does not say which"
            f"{_doubt(found, outer)}; return the value once, or add 0 to one of the copies "
            "(y + 0 in the place of y.clone()) before the program is exported")
    return [number for each in found for number in each if number is not None]


def _doubt(found: list[set[int | None]], outer: list[Any]) -> str:
    names = [f"{number} {_shown(outer[number])}" for number, each in enumerate(found)
             if len(each) > 1]
    return f" (in doubt: {', '.join(names)})" if names else " (no choice fits sizes and dtypes)"


def _shown(value: Any) -> str:
    if not isinstance(value, Tensor):
        return "an integer"
    return f"{value.host_dtype}[{','.join(map(str, value.sizes))}]"
