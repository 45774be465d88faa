"""What operators may read from values."""

from math import inf

import pytest

from vkrt.errors import FormatError
from vkrt.pte import SymInt, as_bool, as_float, as_int, as_str


def test_accepted():
    assert as_int(3) == 3 and as_int(3.0) == 3 and type(as_int(0.0)) is int
    assert as_float(1) == 1.0 and type(as_float(1)) is float and as_float(-0.5) == -0.5
    assert as_bool(True) is True and as_str("tanh") == "tanh"


def test_infinite_where_float32_is():
    """The largest number of float32 and what rounds to it are finite."""
    largest = 3.4028234663852886e38
    assert as_float(largest) == largest and as_float(-largest) == -largest
    assert as_float(3.4028235677973362e38) == 3.4028235677973362e38
    assert as_float(3.4028235677973366e38) == inf and as_float(-3.4028235677973366e38) == -inf
    assert as_float(1.797e308) == inf and as_float(1 << 62) == 2.0**62


@pytest.mark.parametrize("read, value", [
    (as_int, 0.5), (as_int, inf), (as_int, float("nan")), (as_int, True), (as_int, None),
    (as_int, SymInt(0)), (as_int, "1"), (as_float, False), (as_float, None), (as_bool, 1),
    (as_bool, 0.0), (as_str, 1),
])
def test_refused(read, value):
    with pytest.raises(FormatError, match="expected .* got"):
        read(value)
