"""Damaged files of compiled programs: a clear error, or a run that reaches no other memory."""

from __future__ import annotations

import os
import struct
import sys

import pytest
from compiled_files import rewritten, smaller
from program_samples import changed
from support import MODELS, inputs_of, need_imports, need_one_memory, run_python

import vkrt
from vkrt.compiled.file import HEAD
from vkrt.errors import FormatError
from vkrt.executable import flat
from vkrt.executable.program import Compiled

MLP = MODELS / "mlp.pte"

pytestmark = pytest.mark.driver


def test_a_condition_that_the_host_does_not_see(device, compiled_of):
    """A file may say that a branch reads a weight, which is mapped for the device alone."""
    need_one_memory(device)
    need_imports(device)
    out = compiled_of("branches")

    def elsewhere(compiled: Compiled) -> Compiled:
        executable = compiled.targets[0].methods[0].largest.executable
        array, = executable.execution.submissions[0].host.reads
        read = array._replace(range=array.range._replace(
            storage=executable.weights.mapped[0].storage))
        way = "targets.0.methods.0.largest.executable.execution.submissions.0.host.reads"
        return changed(compiled, way, (read,))

    rewritten(out, elsewhere)
    with vkrt.load(out) as program, pytest.raises(FormatError, match="memory that it does not see"):
        program.run(*inputs_of(program))


@pytest.mark.parametrize("change, words", [
    (lambda data: data[:HEAD.size - 1], "32 bytes or more"),
    (lambda data: data[:-1], "is it cut off"),
    (lambda data: data + b"\0", "is it cut off"),
    (lambda data: data[:8] + struct.pack("<I", 9) + data[12:],
     f"format version {flat.PROGRAM_FILE_VERSION}"),
    (lambda data: data[:16] + struct.pack("<Q", 8) + data[24:], "is it cut off"),
    (lambda data: data[:16] + struct.pack("<Q", 1 << 63) + data[24:], "is it cut off"),
    (lambda data: data[:-8] + b"\1" * 8, "damaged"),
])
def test_damaged_files(change, words, compiled_of):
    out = compiled_of(MLP)
    out.write_bytes(change(out.read_bytes()))
    with pytest.raises(FormatError, match=rf"mlp\.vkx: .*{words}"):
        vkrt.load(out)


@pytest.mark.parametrize("change, words", [
    (lambda c: c._replace(targets=()), "a target"),
    (lambda c: c._replace(modules=()), "the name of a module"),
    (lambda c: c._replace(modules=tuple(m._replace(nbytes=1 << 40) for m in c.modules)),
     "before the records"),
    (lambda c: c._replace(modules=tuple(m._replace(offset=-4) for m in c.modules)),
     "before the records"),
    (lambda c: c._replace(targets=(*c.targets, c.targets[0]._replace(methods=()))),
     "the same methods"),
    (lambda c: changed(c, "targets.0.methods.0.largest.inputs", ()), "inputs and their names"),
])
def test_records_that_cannot_be(change, words, compiled_of):
    out = compiled_of(MLP)
    rewritten(out, change)
    with pytest.raises(FormatError, match=words):
        vkrt.load(out)


def with_shape(compiled: Compiled, **changes) -> Compiled:
    """The same with its further shape changed."""
    return changed(compiled, "targets.0.methods.0.others.0",
                   compiled.targets[0].methods[0].others[0]._replace(**changes))


@pytest.mark.parametrize("change, words", [
    (lambda shape: {"inputs": ()}, "sizes of 1 inputs"),
    (lambda shape: {"outputs": ()}, "outputs and their names"),
    (lambda shape: {"execution": shape.execution._replace(blocks=())}, "that has memory"),
    (lambda shape: {"execution": shape.execution._replace(storages=tuple(
        storage._replace(nbytes=storage.nbytes + 16 * (storage.role == "weight"))
        for storage in shape.execution.storages))}, "a weight or state at every shape"),
    (lambda shape: {"execution": shape.execution._replace(storages=())},
     "a weight or state at every shape"),
])
def test_further_shapes_that_cannot_be(change, words, compiled_of):
    with vkrt.load(MODELS / "conv-dyn.pte") as program:
        info, = program.metadata().inputs
    out = compiled_of("conv-dyn", shapes=[[smaller(info)], [info.sizes]], weights="copy")
    rewritten(out, lambda compiled: with_shape(
        compiled, **change(compiled.targets[0].methods[0].others[0])))
    with pytest.raises(FormatError, match=words):
        vkrt.load(out)


def test_parameters_of_shaders(compiled_of):
    """Of a file with cooperative workgroups, whose shared memory no driver guards: in another
    process, as what goes beyond it may end that."""
    out = compiled_of("quantized_mlp_row", device="generic")
    code = """
        import sys
        from pathlib import Path

        from compiled_files import rewritten
        from program_samples import changed, executable_of
        from support import inputs_of

        import vkrt
        from vkrt.compiled.file import read
        from vkrt.errors import VkrtError
        from vkrt.executable.records import DispatchCommand
        from vkrt.memory.source import Source

        path = Path(sys.argv[1])
        good = path.read_bytes()
        execution = executable_of(read(Source.open(path)).read()).execution
        runs = 0
        for s, submission in enumerate(execution.submissions):
            for c, command in enumerate(submission.commands):
                if not isinstance(command, DispatchCommand):
                    continue
                for p, word in enumerate(command.push_constants):
                    way = ("targets.0.methods.0.largest.executable.execution.submissions."
                           f"{s}.commands.{c}.push_constants.{p}")
                    path.write_bytes(good)
                    rewritten(path, lambda compiled: changed(compiled, way, word ^ 1 << 20))
                    try:
                        with vkrt.load(path) as program:
                            program.run(*inputs_of(program))
                            runs += 1
                    except VkrtError:
                        pass
        print(runs)
    """
    assert int(run_python(code, out, PYTHONPATH=os.pathsep.join(sys.path))) > 100


def test_constants_that_no_kernel_has(compiled_of):
    """A filter that is thousands of taps wide is not unrolled as one of three is, which would take
    some hundred megabytes here, and all memory for a wider one."""
    out = compiled_of("conv_mix", storage="buffer")
    code = """
        import sys
        from pathlib import Path
        from resource import RUSAGE_SELF, getrusage

        from compiled_files import rewritten
        from program_samples import changed

        import vkrt
        from vkrt.errors import VkrtError

        def wide(compiled):
            way = "targets.0.methods.0.largest.executable.execution.kernels"
            kernels = compiled.targets[0].methods[0].largest.executable.execution.kernels
            return changed(compiled, way, tuple(
                kernel._replace(constants=tuple(
                    (number, 1 << 12 if number in (7, 10) else value)
                    for number, value in kernel.constants))
                if "depthwise" in kernel.shader else kernel for kernel in kernels))

        path = Path(sys.argv[1])
        with vkrt.load(path):
            before = getrusage(RUSAGE_SELF).ru_maxrss
        rewritten(path, wide)
        try:
            vkrt.load(path).close()
        except VkrtError:
            pass
        print(getrusage(RUSAGE_SELF).ru_maxrss - before)
    """
    kilobytes = int(run_python(code, out, PYTHONPATH=os.pathsep.join(sys.path)))
    assert kilobytes < 64 << 10
