"""The smallest memory budget: an error names the one that works, and one byte less does not."""

from contextlib import closing

import numpy as np
import pytest
from support import MODELS, inputs_of, same_bits

import vkrt
from vkrt.compiler.description import Description
from vkrt.runtime.open_device import OpenDevice

PROGRAMS = [(name, "texel") for name in
            ("mlp", "conv_mix", "unet_small", "lstm_cell", "buffers", "conv-dyn", "mlp-fp16")]
PROGRAMS += [(name, storage) for name in ("mlp", "conv-dyn") for storage in ("buffer", "texture3d")]
OPTIONS = [{"weights": weights} for weights in ("auto", "direct", "copy", "stream")]
OPTIONS += [{"stream_lookahead": 0}, {"weights": "stream", "stream_lookahead": 2},
            {"weights": "copy", "order": "eager"}]


@pytest.fixture(scope="module", params=["own", "shared"])
def treated(request, device):
    """Devices with memory of their own, and as they are."""
    return request.getfixturevalue("discrete") if request.param == "own" else device


# Nothing runs: planning takes minutes, and asks the driver only for what memory it needs.
@pytest.mark.once
@pytest.mark.parametrize("name, storage", PROGRAMS)
def test_the_smallest_budget_is_the_smallest(name, storage, treated):
    def peak(budget, **options):
        options = vkrt.LoadOptions(storage=storage, memory_budget=budget, **options)
        return description.compile("forward", OpenDevice(treated), options).memory.peak_bytes

    with closing(Description(MODELS / f"{name}.pte")) as description:
        # Plans of the U-Net take seconds.
        for options in OPTIONS[::3] if name == "unet_small" else OPTIONS:
            smallest = peak("smallest", **options)
            assert peak(smallest, **options) <= smallest
            with pytest.raises(vkrt.InputError) as error:
                peak(smallest - 1, **options)
            assert (f"memory_budget={smallest - 1:,}: expected at least {smallest:,} bytes"
                    in str(error.value)), options


@pytest.mark.parametrize("name", ["conv_mix", "conv-dyn", "unet_small"])
def test_what_the_error_names_can_be_loaded(name, treated):
    """The bytes are measured, and the results are those of a load without a budget."""
    path = MODELS / f"{name}.pte"
    with vkrt.load(path, treated) as program:
        inputs = inputs_of(program)
        smaller = [np.ascontiguousarray(array[..., :16, :22]) for array in inputs]
        dynamic = any(info.dynamic_dims for info in program.metadata().inputs)
        calls = [inputs, smaller] if dynamic else [inputs]
        expected = [program.run(*call) for call in calls]
    with pytest.raises(vkrt.InputError, match="expected at least ([0-9,]+) bytes") as error:
        vkrt.load(path, treated, memory_budget=1)
    named = int(error.value.args[0].split("at least ")[1].split(" bytes")[0].replace(",", ""))
    with pytest.raises(vkrt.InputError, match=f"expected at least {named:,} bytes"):
        vkrt.load(path, treated, memory_budget=named - 1)
    with vkrt.load(path, treated, memory_budget=named) as program:
        for call, outputs in zip(calls, expected):
            same_bits(program.run(*call), outputs)
        assert program.memory.measured_peak == program.memory.planned_peak <= named
