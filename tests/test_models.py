"""Whole programs against eager torch: results and memory, in every storage."""

import numpy as np
import pytest
from support import close_to, find_model, need_model, same_bits

import vkrt
from vkrt import pte
from vkrt.device.policy import policy_of, target_of
from vkrt.dynamic.ranges import find_dynamic
from vkrt.graph.build import build_graph
from vkrt.lowering.lowering import lower
from vkrt.ops.registry import kernels as portable_kernels
from vkrt.ops.registry import mutated
from vkrt.work.records import HostCall

# In the repository; fp32 within 1e-5 relative L2, programs with fp16 inside 2e-3.
SMALL = ["toy", "mlp", "mlp-fp16", "conv_mix", "conv1d", "pools", "superres_small", "elementwise",
         "shapes", "batch2", "experts", "lstm_cell", "timestep-fp16", "unet_small", "attention",
         "excite", "places", "masks", "complex", "quantized_pictures", "quantized_mlp",
         "quantized_mlp_row", "quantized_kernels"]
# In the folders of VKRT_MODELS.
LARGE = ["toy-base", "mlp-base", "mlp-fp16", "dwconv-base", "superres-base", "conv1d_wav-base",
         "convtranspose-base", "elementwise-base", "lstm-base", "lstm_nn-base", "gru_nn-base",
         "digit-recognizer", "silero-vad", "realesr-animevideov3",
         "realesr-animevideov3-fp16", "efficientnet-lite0", "mobilenet_v2-base",
         "mobilenet_v3_large-base", "resnet18-base", "resnet50-base", "efficientnet_b0-base",
         "shufflenet_v2-base", "squeezenet-base", "mnasnet-base", "regnet_y-base", "edsr-base",
         "edsr-fp16", "wavenet-base", "wavenet-fp16", "unet-base",
         "dcgan-base", "densenet121-base", "convnext_tiny-base", "vit_sdpa-base", "swin-base"]
# There too: weights of 4 and 8 bits, which lie in the file as kernels read them.
QUANTIZED_WEIGHTS = ["mlp_vk4w-base", "mlp_vk8w-base"]


def check(path, device, **options):
    """Runs a program twice on its reference input and compares results and memory."""
    reference = np.load(path.with_name(path.name.replace("-fp16", "") if not
                                       path.with_suffix(".npz").exists() else path.name)
                        .with_suffix(".npz"))
    keys = sorted((k for k in reference.files if k.startswith("in")), key=lambda k: int(k[2:]))
    prefix = "exact_out" if "exact_out0" in reference.files else "out"
    with vkrt.load(path, device, **options) as program:
        inputs = [reference[k].astype(i.dtype) if i.dtype == "float16" else reference[k]
                  for k, i in zip(keys, program.metadata().inputs)]
        results = program.run(*inputs)
        same_bits(program.run(*inputs), results)
        close_to(results, [reference[f"{prefix}{index}"] for index in range(len(results))],
                 2e-3 if "fp16" in path.name else 1e-5)
        memory = program.memory
        assert memory.measured_peak == memory.planned_peak
        assert all(p.device == p.blocks for p in memory.phases)
        return program.memory


@pytest.mark.parametrize("name", SMALL)
def test_small(name, storage, device):
    check(find_model(f"{name}.pte"), device, storage=storage)


@pytest.mark.parametrize("name", SMALL)
def test_small_in_parts(name, storage, device):
    """Nodes in slices and strips, wherever that saves bytes."""
    check(find_model(f"{name}.pte"), device, storage=storage, prefer="memory")


@pytest.mark.parametrize("name", LARGE)
def test_large(name, device):
    check(need_model(f"{name}.pte"), device)


def test_means_in_parts(storage, device):
    """What is multiplied by factors made of its means is made twice, and is never there as a
    whole."""
    whole, parts = (check(find_model("excite.pte"), device, storage=storage, prefer=prefer)
                    for prefer in ("speed", "memory"))
    hidden = 32 * 32 * 32 * 4
    # Some devices give each image whole pages of 64 KiB: too many for strips of so small a one.
    # What lowering counts for images is looked at in tests/ops/test_recompute.py.
    if storage != "texture3d":
        assert whole.activations > 2 * hidden and parts.activations < 1.2 * hidden


# Quantized networks: the results are those of the file's whole numbers, bit by bit.
QUANTIZED = ["quantized_pictures", "quantized_mlp", "quantized_mlp_row", "mlp_q8-base",
             "dwconv_q8-base", "superres_q8-base", "mobilenet_v2_q8-base"]


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_networks_give_the_same_bits(name, storage, device):
    path = need_model(f"{name}.pte")
    reference = np.load(path.with_suffix(".npz"))
    expected = reference["exact_out0" if "exact_out0" in reference.files else "out0"]
    check(path, device, storage=storage)
    for fusions in ("on", "off"):
        with vkrt.load(path, device, storage=storage, fusions=fusions) as program:
            np.testing.assert_array_equal(program.run(reference["in0"])[0], expected)


def test_relu6_between_quantized_layers_is_done_by_their_kernels(device):
    """MobileNetV2 has 34 of them; between them 8 bits of every element are enough."""
    path = need_model("mobilenet_v2_q8-base.pte")
    rows, activations = {}, {}
    for fusions in ("on", "off"):
        with vkrt.load(path, device, fusions=fusions) as program:
            profile = program.profile(np.load(path.with_suffix(".npz"))["in0"], repeat=1)
            rows[fusions], activations[fusions] = len(profile.steps), program.memory.activations
    assert rows["off"] - rows["on"] == 3 * 34
    assert activations["on"] <= activations["off"] / 3


@pytest.mark.parametrize("name", QUANTIZED_WEIGHTS)
def test_quantized_weights(name, storage, device):
    memory = check(need_model(f"{name}.pte"), device, storage=storage)
    if policy_of(device.info).maps_files and storage != "texture3d":
        # Some constants lie where the device may not look (minTexelBufferOffsetAlignment).
        assert memory.mapped > 20 * memory.weights and memory.staging == 0


def test_unsupported_names_everything_at_once(device):
    data = find_model("mlp.pte").read_bytes()
    for name in (b"aten.gelu", b"aten.native_layer_norm"):
        assert name in data
        data = data.replace(name, name[:-1] + b"_")
    with pytest.raises(vkrt.UnsupportedError, match="needs 2 things") as raised:
        vkrt.load(data, device)
    for words in ("aten.gel_.default x1", "aten.native_layer_nor_.default x1"):
        assert words in str(raised.value)


@pytest.mark.parametrize(("name", "kernels"), [
    ("attention", []), ("toy", []), ("places", ["aten::cumsum.out", "aten::sort.values"])])
def test_kernels_between_delegates_run_on_the_device(name, kernels, device, on_host):
    """All delegates and the kernels between them are one piece of work but for what the device has
    no operator for, or leaves to numpy."""
    path = find_model(f"{name}.pte")
    data = path.read_bytes()
    program = pte.read_program(data)
    graph = build_graph(data, program, program.plans[0], portable_kernels(), find_dynamic, mutated)
    assert sorted(node.op for node in graph.nodes if node.is_host) == kernels
    assert any(node.kernel and not node.is_host for node in graph.nodes)
    work = lower(graph, target_of(device.info))
    assert sum(isinstance(step, HostCall) for step in work.steps) == len(kernels)


@pytest.mark.parametrize("name", SMALL)
def test_eager_order(name, device):
    """The older order gives the same results and a peak that is as planned and never lower."""
    path = find_model(f"{name}.pte")
    eager = check(path, device, order="eager")
    lazy = check(path, device, order="lazy")
    assert eager.measured_peak >= lazy.measured_peak


@pytest.mark.parametrize("name", [*SMALL, "realesr-animevideov3", "efficientnet-lite0",
                                  "superres-base", "conv1d_wav-base", "silero-vad",
                                  "digit-recognizer"])
def test_arena(name, load, exact_sizes):
    """The arena is as small as what is alive at once, and no larger than the file's own plan."""
    path = need_model(f"{name}.pte")
    memory = load(path).memory
    # A few alignments count in an arena of a few kilobytes.
    assert memory.activations <= max(1.03 * memory.lower_bound, memory.lower_bound + 4096)
    if memory.file_plan > 1 << 16:
        # The file does not count what brings inputs in and outputs out, which decides for
        # programs of a few kilobytes.
        assert memory.activations <= memory.file_plan
