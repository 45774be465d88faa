"""The README's recipes of exporting run as they are written, and what they export runs here.

They need a Python with PyTorch and ExecuTorch: this one, or the one that VKRT_EXPORT_PYTHON names
(tests/README.md says how).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support import relative_l2

import vkrt
from vkrt.pte import read_program

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOOLS = ROOT / "tools" / "export"
SECTION = README.split("## How to export a program\n")[1].split("\n## ")[0]
# The first recipe, and those of the list: name and lines
FIRST = textwrap.dedent(re.search(r"^(?:    .*\n|\n)+", SECTION.split(":\n", 1)[1])[0]).strip()
OTHERS = {name: textwrap.dedent(lines).strip() for name, lines in re.findall(
    r"^\* \*\*(.*?)\*\*.*\n(?:  \S.*\n)*\n((?:      .*\n)+)", SECTION, re.MULTILINE)}
NETWORKS = [name for name in OTHERS if "language model" not in name]
# Of small language models: how many words they know, so that a table of them is several blocks of
# rows for the tool that quantizes it, and a text
WORDS, TOKENS = 1200, [1, 7, 33, 1199, 600]
# Which results are expected: those of the module in fp32, saved beside the program
EXPECTED = """
inputs = tuple(torch.randn(SHAPE) for _ in inputs)
import numpy
numpy.savez("net.npz", x=inputs[0], y=net(*inputs).detach())
"""


def exporting_python(*packages):
    """The Python that exports, or a skip."""
    python = os.environ.get("VKRT_EXPORT_PYTHON") or sys.executable
    code = f"import importlib.util as u; assert all(map(u.find_spec, {packages!r}))"
    if python == sys.executable and find_spec("torch") is None:
        pytest.skip("PyTorch is not installed here, and VKRT_EXPORT_PYTHON names no Python with it")
    if subprocess.run([python, "-c", code], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} does not have {', '.join(packages)}")
    return python


def run(folder, *command):
    """Runs a command in a folder; its failure fails the test."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def with_recipe(name: str) -> str:
    """The first recipe with another one's lines in the place that the README says."""
    assert "The same with these lines in the place of `program = ..`" in SECTION
    place, = re.findall(r"^program = .*$", FIRST, re.MULTILINE)
    return FIRST.replace(place, OTHERS[name]) if name else FIRST


def exported(name, folder, shape=(1, 3, 64, 64)):
    """Runs a recipe in a folder; the program's path, an input and what eager PyTorch makes of it.
    """
    python = exporting_python("torch", "executorch.exir", "torchao")
    run(folder, python, "-c", with_recipe(name) + EXPECTED.replace("SHAPE", repr(shape)))
    with np.load(folder / "net.npz") as arrays:
        return folder / "net.pte", arrays["x"], arrays["y"]


def test_the_recipes_are_found():
    assert FIRST.startswith("import torch") and FIRST.endswith("buffer)")
    assert list(OTHERS) == ["fp16", "Dynamic shapes", "8 bits",
                            "A language model with 4-bit weights"]


@pytest.mark.parametrize(("name", "shape", "least", "most"), [
    ("", (1, 3, 64, 64), 0, 1e-5), ("fp16", (1, 3, 64, 64), 1e-5, 2e-3),
    ("Dynamic shapes", (1, 3, 40, 200), 0, 1e-5), ("8 bits", (1, 3, 64, 64), 1e-3, 0.05),
], ids=lambda value: value.replace(" ", "-") or "fp32" if isinstance(value, str) else None)
def test_networks(name, shape, least, most, device, tmp_path):
    """The results are as far from those of the module as its numbers are made shorter."""
    path, x, expected = exported(name, tmp_path, shape)
    with vkrt.load(path, device) as program:
        y, = program(x)
    assert y.shape == expected.shape and least <= relative_l2(y, expected) < most


def checkpoint(folder, python):
    """A small Llama with weights at random, its last layer the embedding, in a folder."""
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": WORDS,
              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "eos_token_id": 2,
              "tie_word_embeddings": True}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    sizes = {"model.embed_tokens": (WORDS, 64), "model.norm": (64,)}
    for layer in ("model.layers.0.", "model.layers.1."):
        sizes |= {layer + name: size for name, size in {
            "input_layernorm": (64,), "post_attention_layernorm": (64,),
            "self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64),
            "self_attn.v_proj": (32, 64), "self_attn.o_proj": (64, 64),
            "mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64),
            "mlp.down_proj": (64, 128)}.items()}
    run(folder, python, "-c", f"""
import torch
from safetensors.torch import save_file
torch.manual_seed(1)
save_file({{f"{{name}}.weight": torch.randn(size) * 0.2 + (len(size) == 1)
            for name, size in {sizes!r}.items()}}, "model.safetensors")
""")


def test_a_language_model(device, tmp_path):
    """A checkpoint with small weights at random, as the README's line exports it."""
    python = exporting_python("torch", "executorch.exir", "torchao", "safetensors")
    checkpoint(tmp_path / "checkpoint", python)
    line = OTHERS["A language model with 4-bit weights"]
    words = shlex.split(line.replace("FOLDER", str(tmp_path / "checkpoint")))
    run(tmp_path, python, ROOT / words[1], *words[2:])
    with vkrt.load(tmp_path / "model.pte", device) as program:
        assert program.constants["get_max_seq_len"] == (2048,)
        ids = list(vkrt.generate(program, [1, 7, 33], max_tokens=5, ends=()))
    assert len(ids) == 5 and all(0 <= token < WORDS for token in ids)


WEIGHTS = ("none", "8w", "4w --embedding --half", "8da4w --embedding")
# Exports a checkpoint with each of these, and saves what eager PyTorch computes with the weights as
# ExecuTorch quantizes those of a whole model; those of 8w are in a form that has their numbers.
QUANTIZED = """
import sys
import numpy, torch
sys.path.insert(0, TOOLS)
import checkpoint
from pathlib import Path
from executorch.examples.models.llama.source_transformation import quantize as executorch
from language import transformer, with_operators
from safetensors.torch import load_file

def weights(folder, head_dim=16):
    for (file, name), places in checkpoint.places_of(folder).items():
        for place in places:
            turns = place.split(".", 2)[-1].startswith(checkpoint.TURNED)
            tensor = load_file(file)[name]
            yield place, checkpoint.turned(tensor, head_dim) if turns else tensor

folder = Path("checkpoint")
for words in WEIGHTS:
    sys.argv[1:] = ["checkpoint", f"{words}.pte", "--context", "16", "--quantize", *words.split()]
    checkpoint.main()
    model = transformer(checkpoint.config_of(folder)[0], 16)
    assert not model.load_state_dict(dict(weights(folder)), strict=False).unexpected_keys
    if "--embedding" in words:
        model = executorch.EmbeddingQuantHandler(model, bitwidth=4, group_size=32,
                                                 packed=True).quantized_model()
    for layer in model.modules() if words == "8w" else ():
        if isinstance(layer, torch.nn.Linear):
            scales = layer.weight.detach().abs().amax(1, keepdim=True) / 127.5
            layer.weight.data = torch.round(layer.weight / scales).clamp(-128, 127) * scales
    if "4w" in words:
        model = executorch.quantize(model, words.split()[0], group_size=32)
    with torch.no_grad():
        numpy.save(words, with_operators(model)(torch.tensor([TOKENS]), torch.tensor([0])))
"""


@pytest.fixture(scope="module")
def quantized(tmp_path_factory):
    """A folder with programs and logits of WEIGHTS."""
    python = exporting_python("torch", "executorch.exir", "torchao", "safetensors")
    folder = tmp_path_factory.mktemp("quantized")
    checkpoint(folder / "checkpoint", python)
    code = f"TOOLS, WEIGHTS, TOKENS = {str(TOOLS)!r}, {WEIGHTS!r}, {TOKENS!r}\n"
    run(folder, python, "-c", code + QUANTIZED)
    return folder


@pytest.mark.parametrize("words", WEIGHTS)
def test_weights_of_language_models(words, quantized, device):
    """The tool quantizes layers one by one and in blocks of rows, to ExecuTorch's numbers."""
    with vkrt.load(quantized / f"{words}.pte", device) as program:
        y, = program(np.array([TOKENS]), np.array([0]))
    expected = np.load(quantized / f"{words}.npy")
    assert relative_l2(y, expected) < (2e-3 if "half" in words else 1e-5)


@pytest.mark.parametrize(("words", "nbytes"), [("none", WORDS * 64 * 4),
                                               ("4w --embedding --half", WORDS * 64 // 2)])
def test_an_embedding_that_is_the_last_layer_is_in_the_file_once(words, nbytes, quantized):
    program = read_program((quantized / f"{words}.pte").read_bytes())
    assert [span.nbytes for span in program.named_data.values()].count(nbytes) == 1
