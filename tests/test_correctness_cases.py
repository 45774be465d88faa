"""Programs that other runtimes of them refuse, end in, or compute wrongly without a word.

Made by tools/export/cases.py and data_sizes.py; each has its reference from eager PyTorch.
"""

import pytest
from support import MODELS, close_to, reference_of

import vkrt

# What goes wrong elsewhere.
NAMES = {
    "attention": "aten.logical_not has no runtime operator",
    "masked": "the least number of float32 becomes -infinity, and rows of nothing else NaN",
    "multihead": "aten.logical_not again",
    "gpt_block": "likewise",
    "swin_block": "off by 2 %",
    "default_stride": "pooling with an empty list of strides",
    "reflect": "an index for each of several dimensions",
    "replicate": "likewise",
    "batch_norm": "of three dimensions",
    "int_equal": "comparison of integers",
    "scalars": "0-d inputs",
    "scalar_between": "a 0-d tensor from a kernel outside of the delegates",
    "convolutions": "depthwise 7x7, groups of odd channels, transposed with groups",
    "left_out": "convolutions outside of the delegates",
    "nearest": "rounds where torch takes the floor",
    "constant_outputs": "constants that leave a delegate are never written",
    "gelu": "the tanh form in the place of erf",
    "softmax": "a shader returns before a barrier",
    "bools": "8-bit features of the device are not checked",
    "shared_outputs": "fewer outputs in the delegate than the call has",
    "shared_decided": "what the message about outputs that are one value tells to write",
    "experts": "topk, argsort and index_add between the delegates",
    "assigned": "a part of an argument made anew, of which the delegate reads nothing",
    "by_masks": "elements and rows that masks choose, and a delegate that only knew their size",
    "repeated": "rows that are repeated as often as the data say",
    "counted_experts": "experts for as many tokens as have chosen them",
    "counted_by_data": "rows that the data choose, and delegates with results of other sizes",
    "counted_up_to": "places that the data choose, up to a number of them",
    "unread_input": "fewer inputs in the delegate than the call has",
    "group_norm": "groups of channels that share texels",
    "bfloat16": "floats of 16 bits that numpy does not have",
    "int16": "integers of 16 bits, which are no dtype of the device",
    "spectrum": "complex numbers, volumes",
    "promoted": "tensors of several dtypes in one operator",
}


@pytest.mark.parametrize("name", NAMES)
def test_case(name, storage, load):
    program = load(f"cases/{name}", storage=storage)
    inputs, outputs = reference_of(f"cases/{name}")
    close_to(program.run(*inputs), outputs)


def test_all_that_is_missing_is_named_at_once(load):
    """What is not supported is not damaged: operators and dtypes in one list."""
    data = (MODELS / "cases/spectrum.pte").read_bytes().replace(b"_fft_r2c", b"_fft_x2c")
    with pytest.raises(vkrt.UnsupportedError) as caught:
        load(data)
    text = str(caught.value)
    assert "needs 2 things" in text
    for words in ("aten::_fft_x2c.out of complex64 x1", "aten::abs.out of complex64 x1"):
        assert words in text


def test_outputs_that_are_one_value_name_what_is_in_doubt(load):
    """Nothing is changed in place: the message is about copies, and says how to export them."""
    with pytest.raises(vkrt.UnsupportedError, match=(
            r"'forward', delegate 0: .*takes 3 outputs .*has 2: .*in doubt: 1 float32\[3,5\], "
            r"2 float32\[3,5\].*add 0")) as caught:
        load("cases/shared_undecided")
    assert "alias_buffer_mutations" not in str(caught.value)


def test_accumulator_names_the_option_to_export_with(load):
    """The file does not say which constant a call should change: nobody can run it."""
    with pytest.raises(vkrt.VkrtError, match="alias_buffer_mutations"):
        load("cases/accumulator")
