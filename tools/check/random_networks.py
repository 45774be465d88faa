"""Do random networks give the same numbers however they are loaded, in the planned bytes?

    python tools/check/random_networks.py                        networks 0 to 999
    python tools/check/random_networks.py --first 1000 --count 9 these
    python tools/check/random_networks.py --of any_nodes         of one kind

Runs on the driver that VK_DRIVER_FILES says. Each number is a network of those of tests/ops:
any_networks.py (chains of layers of images, blocks of convolutions with many channels in the
middle, layers of transformers, wide layers of rows), any_nodes.py (nodes of all kinds, on tensors
of any rank), any_same.py (products and attention of a tensor with itself), any_quantized.py,
any_weights.py and any_heads.py (convolutions and layers of 8 bits, weights of 4 and 8 bits,
attention written out). Half of the kinds are those again with nodes that read one tensor in several
places (repeated.py): `--of any_nodes_repeated`. It is compared with numpy where that has all its
operators.

Networks of floats (tests/ops/any_loads.py) run whole and without fusions in buffers; then as each
`prefer` of a load has it, in one of the storages; and within the smallest memory budget and one
between that and what it takes. Some are in half precision, and two of five run on the device as if
it had memory of its own. Quantized networks (tests/ops/quantized_loads.py) run node by node first,
and then in storages, preferences, budgets and profiles that chance chooses. Every third network has
dynamic sizes, and runs at several of them.

A line is printed for each network whose results differ, whose memory is not as planned, more than
whole or more than its budget, or that fails. The last line says how many took less memory in parts,
and the largest error. Exits 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from vkrt.passes import rewrite
from vkrt.vk.device import Device
from vkrt.vk.device_override import override_device

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

import any_loads  # noqa: E402
import quantized_loads  # noqa: E402
from any_heads import any_heads  # noqa: E402
from any_networks import (  # noqa: E402
    any_borders,
    any_chain,
    any_images,
    any_layers,
    any_rows,
    any_squeezed,
)
from any_nodes import any_nodes, any_wide  # noqa: E402
from any_quantized import any_quantized_images, any_quantized_rows  # noqa: E402
from any_same import any_same  # noqa: E402
from any_weights import any_weights  # noqa: E402
from repeated import repeating  # noqa: E402

QUANTIZED = any_quantized_images, any_quantized_rows, any_weights, any_heads
# What a pass makes wrong is reported, and not left out.
rewrite.strict = True

FLOATS = (any_images, any_chain, any_borders, any_squeezed, any_layers, any_rows, any_nodes,
          any_wide, any_same)
MAKERS = (*FLOATS, *QUANTIZED, *map(repeating, (*FLOATS, *QUANTIZED)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--of", choices=[make.__name__ for make in MAKERS])
    options = parser.parse_args()
    makers = [make for make in MAKERS if options.of in (None, make.__name__)]
    wrong = divided = 0
    worst = 0.0
    with ExitStack() as stack:
        device = stack.enter_context(Device.open())
        with override_device(discrete=True):
            own = stack.enter_context(Device.open())
        for number in range(options.first, options.first + options.count):
            make, less = makers[number % len(makers)], False
            try:
                if make in QUANTIZED or getattr(make, "__wrapped__", None) in QUANTIZED:
                    error = quantized_loads.check(number, make, device)
                else:
                    error, less = any_loads.check(number, make, own if number % 5 > 2 else device)
                worst, divided = max(worst, error), divided + less
            except Exception as failure:
                print(f"{number}, {make.__name__}: {type(failure).__name__}: {failure}", flush=True)
                wrong += 1
    print(f"{options.count} networks, {wrong} wrong, {divided} with less memory in parts; largest "
          f"error {worst:.1e} of what is allowed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
