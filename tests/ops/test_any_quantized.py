"""Random quantized networks: what numpy gives, node by node, and however they are loaded.

tools/check/quantized.py runs as many as one likes.
"""

import pytest
from loads import check, make, ways


@pytest.mark.parametrize("number", range(15))
def test_nodes_alone(number, device):
    check(make(number), number, device, next(ways(number)), alone=True)


@pytest.mark.parametrize("number", range(15))
def test_however_they_are_loaded(number, device):
    for way in list(ways(number))[1:]:
        check(make(number), number, device, way, alone=False)
