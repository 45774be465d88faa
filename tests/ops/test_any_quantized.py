"""Random quantized networks: what numpy gives, node by node, and however they are loaded.

tools/check/random_networks.py runs as many as one likes.
"""

import pytest
from any_heads import any_heads
from any_quantized import any_quantized_images, any_quantized_rows
from any_weights import any_weights
from quantized_loads import check, check_nodes

MAKERS = any_quantized_images, any_quantized_rows, any_weights, any_heads


@pytest.mark.parametrize("number", range(16))
def test_any_quantized(number, device):
    check(number, MAKERS[number % 4], device)


@pytest.mark.parametrize("number", [16, 17, 18, 19, 25])
def test_nodes_alone(number, device):
    check_nodes(number, MAKERS[number % 4], device)
