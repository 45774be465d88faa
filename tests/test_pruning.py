"""Shader modules without what their constants never reach: valid, smaller, and the same kernels."""

from __future__ import annotations

import random
import struct
import subprocess

import pytest
from support import MODELS, need_command, reference_of, same_bits

import vkrt
from vkrt.runtime import pipelines
from vkrt.shader import Shader, shader_library, spirv
from vkrt.vk.pipeline import pruned

PHI, SELECTION_MERGE, LABEL, BRANCH_CONDITIONAL, SWITCH, DECORATE = 245, 247, 248, 250, 251, 71
BRANCH, RETURN, UNREACHABLE, COPY = 249, 253, 255, 83

# What is said of a module by hand: ids
VOID, FUNCTION_TYPE, BOOL, INT, TWO, SPEC, IS_TWO, MAIN = range(1, 9)
FIRST, YES, NO, END, A, B, CHOSEN = range(9, 16)


def module(*found: tuple[int, ...]) -> bytes:
    """Words of a module of these instructions: the opcode and the operands of each."""
    words = [spirv.MAGIC, 0x10300, 0, 100, 0]
    for opcode, *operands in found:
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def opcodes(code: bytes) -> list[int]:
    return [found.opcode for found in spirv.instructions(spirv.words_of(code))]


def selection(*blocks: tuple[int, ...]) -> bytes:
    """A function that goes one of two ways, as a specialization constant (id 7, default 5) is 2."""
    return module((DECORATE, SPEC, 1, 7), (DECORATE, B, 42), (19, VOID), (33, FUNCTION_TYPE, VOID),
                  (20, BOOL), (21, INT, 32, 1), (43, INT, TWO, 2), (50, INT, SPEC, 5),
                  (52, BOOL, IS_TWO, 170, SPEC, TWO), (54, VOID, MAIN, 0, FUNCTION_TYPE),
                  (LABEL, FIRST), *blocks, (56,))


IF = selection((SELECTION_MERGE, END, 0), (BRANCH_CONDITIONAL, IS_TWO, YES, NO),
               (LABEL, YES), (128, INT, A, TWO, TWO), (BRANCH, END),
               (LABEL, NO), (132, INT, B, TWO, TWO), (BRANCH, END),
               (LABEL, END), (PHI, INT, CHOSEN, A, YES, B, NO), (RETURN,))
SWITCHED = selection((SELECTION_MERGE, END, 0), (SWITCH, SPEC, NO, 2, YES),
                     (LABEL, YES), (128, INT, A, TWO, TWO), (BRANCH, END),
                     (LABEL, NO), (132, INT, B, TWO, TWO), (RETURN,),
                     (LABEL, END), (RETURN,))


@pytest.mark.parametrize(("value", "stays", "goes", "result"), [(2, 128, 132, A), (3, 132, 128, B)])
def test_one_way_of_a_selection_is_left(value, stays, goes, result):
    found = pruned(IF, [(7, value)])
    assert stays in opcodes(found) and goes not in opcodes(found)
    assert not {PHI, SELECTION_MERGE, BRANCH_CONDITIONAL} & set(opcodes(found))
    copy, = (each for each in spirv.instructions(spirv.words_of(found)) if each.opcode == COPY)
    assert copy.operands == (INT, CHOSEN, result)
    # What is said of an id that is gone goes with it.
    assert opcodes(found).count(DECORATE) == (1 if result == A else 2)


def test_without_a_value_the_default_counts():
    assert pruned(IF, []) == pruned(IF, [(7, 5)]) == pruned(IF, [(8, 2), (7, 5)])


def test_a_case_stays_a_selection():
    """What leaves a case early goes to the end of the switch, which has to be there then."""
    found = spirv.instructions(spirv.words_of(pruned(SWITCHED, [(7, 2)])))
    assert next(each.operands for each in found if each.opcode == SWITCH) == (SPEC, YES)
    found = spirv.instructions(spirv.words_of(pruned(SWITCHED, [(7, 9)])))
    assert next(each.operands for each in found if each.opcode == SWITCH) == (SPEC, NO)
    assert [each.opcode for each in found][-4:] == [RETURN, LABEL, UNREACHABLE, 56]


def test_a_loop_that_never_comes_round_is_left_whole():
    loop = selection((BRANCH, YES), (LABEL, YES), (246, END, NO, 0), (BRANCH, A), (LABEL, A),
                     (BRANCH_CONDITIONAL, IS_TWO, END, NO), (LABEL, NO), (BRANCH, YES),
                     (LABEL, END), (RETURN,))
    assert pruned(loop, [(7, 2)]) == loop
    assert pruned(loop, [(7, 3)]) != loop


@pytest.mark.parametrize("data", [b"", b"\0" * 20, IF[:-2], IF + b"\0\0\3\0", IF + bytes(4)])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match="not a SPIR-V module"):
        pruned(data, [])


def constants_of(shader: Shader, rng: random.Random, everything: bool) -> list[tuple[int, int]]:
    """Values as dispatches have them, of what selects code or of all constants."""
    return [(spec.id, 64 if spec.id == 100 else rng.randrange(2) if spec.id > 100
             else rng.choice((0, 1, 1, 2, 3, 5, 8, 19)))
            for spec in shader.specs if everything or not spec.may_be_pushed]


@pytest.mark.parametrize("part", range(18))
def test_every_kernel_stays_valid(part):
    """With any constants, and with no more instructions than before."""
    validator = need_command("spirv-val")
    rng = random.Random(part)
    for name in list(shader_library())[part::18]:
        shader = shader_library().get(name)
        for everything in (False, True):
            found = pruned(shader.spirv, constants_of(shader, rng, everything))
            assert len(found) <= len(shader.spirv)
            done = subprocess.run([validator, "--target-env", "vulkan1.2", "-"], input=found,
                                  capture_output=True)
            assert done.returncode == 0, f"{name}: {done.stderr.decode(errors='replace')}"


def test_a_kernel_of_many_kinds_gets_small():
    """A copy of texels needs a tenth of what all kinds of walks need."""
    shader = shader_library().get("copy.texel.f32")
    specs = [(spec.id, 1) for spec in shader.specs if not spec.may_be_pushed]
    assert len(pruned(shader.spirv, specs)) < len(shader.spirv) / 5


@pytest.mark.parametrize("name", ["conv_mix", "toy", "shapes", "pools"])
@pytest.mark.parametrize("specialize", ["few", "all"])
def test_the_same_bits_as_of_whole_modules(name, specialize, device, monkeypatch):
    inputs, _ = reference_of(name)

    def results():
        with vkrt.load(MODELS / f"{name}.pte", device, specialize=specialize) as program:
            return program.run(*inputs)

    found = results()
    monkeypatch.setattr(pipelines, "pruned", lambda module, constants: bytes(module))
    same_bits(found, results())
