"""Cached plans: the same program in fewer steps, and a file that does not fit is none."""

import os
import pickle
import shutil
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from support import MODELS, damaged, examples_of, inputs_of, raising, run_python, same_bits

import vkrt
from vkrt.capi import config
from vkrt.compiler import plan_cache
from vkrt.compiler.description import Description
from vkrt.device import policy
from vkrt.errors import UnsupportedError
from vkrt.executable import flat
from vkrt.executable.executable import Executable
from vkrt.plan.options import LoadOptions
from vkrt.program.program import Program
from vkrt.runtime import mapping

MLP = MODELS / "mlp.pte"
# Of fixed sizes: kernels on the host, states, quantized weights, several outputs
STATIC = ("places", "mlp", "elementwise", "quantized_mlp", "kept_attention", "branches",
          "unet_small")

pytestmark = [pytest.mark.driver, pytest.mark.usefixtures("any_age")]


@pytest.fixture
def forbidden(monkeypatch):
    """Call it, and from then on no graph can be made."""
    return partial(monkeypatch.setattr, Description, "graph", raising(AssertionError, "a graph"))


def plans(folder):
    return sorted(folder.glob("*.vkplan"))


def loaded(path, folder, **options):
    """What a load and a run come to: outputs, and everything planned and said."""
    with vkrt.load(path, plan_cache=folder, **options) as program:
        method = program.load_method(program.method_names[0])
        outputs = program.run(*inputs_of(program), method=program.method_names[0])
        plan = method.largest.executable
        executable = plan if isinstance(plan, Executable) else plan.record
        return (outputs, executable, vars(method.metadata), program.method_names,
                program.memory.notes, program.memory.file_plan, program.memory.planned_peak)


@pytest.mark.parametrize("options", [{}, {"weights": "copy"}, {"memory_budget": "smallest"},
                                     {"storage": "texture3d"}], ids=str)
@pytest.mark.parametrize("name", STATIC)
def test_the_same_program(name, options, tmp_path, forbidden):
    """The second load does not make a graph; results, plan and messages are those of the first."""
    path = MODELS / f"{name}.pte"
    first = loaded(path, tmp_path, **options)
    assert len(plans(tmp_path)) == 1
    forbidden()
    second = loaded(path, tmp_path, **options)
    same_bits(second[0], first[0])
    assert second[1:] == first[1:]
    assert len(plans(tmp_path)) == 1


def test_what_is_not_imported(tmp_path):
    """A process that finds a plan has neither read the program nor imported an operator."""
    code = """
        import sys
        import vkrt
        from vkrt.compiler import plan_cache
        plan_cache.RECENT_NS = 0
        with vkrt.load(sys.argv[1], plan_cache=sys.argv[2]) as program:
            program.load_method("forward")
        print(*(name for name in ("vkrt.pte.container", "vkrt.graph.build", "vkrt.ops.registry",
                                  "vkrt.lowering.lowering", "vkrt.plan.plan")
                if name in sys.modules))
    """
    first, second = (run_python(code, str(MLP), str(tmp_path)).split() for _ in range(2))
    assert len(first) == 5
    assert second == []


@pytest.mark.parametrize("kind", ["plan", "compiled"])
def test_what_a_host_in_c_does_without(kind, tmp_path):
    """A later start of a host, or one with a compiled program, needs none of these modules, which
    take more time or memory than all of vkrt's, nor what they import."""
    code = """
        import ctypes, struct, sys
        # What is None there cannot be imported, whoever has imported it before.
        sys.modules.update(dict.fromkeys(sys.argv[3].split()))
        from vkrt.compiler import plan_cache
        plan_cache.RECENT_NS = 0
        library = ctypes.CDLL(sys.argv[2])
        library.vkrt_last_error_text.restype = ctypes.c_char_p

        def tensor(nbytes):
            memory = ctypes.create_string_buffer(nbytes)
            whole = struct.pack("QQ", ctypes.addressof(memory), nbytes) + bytes(240)
            return memory, ctypes.create_string_buffer(whole)

        program, (x, given), (y, taken) = ctypes.c_void_p(), tensor(360), tensor(120)
        if library.vkrt_load(sys.argv[1].encode(), None, ctypes.byref(program)) or library.vkrt_run(
                program, None, None, given, ctypes.c_size_t(1), taken, ctypes.c_size_t(1)):
            raise SystemExit(library.vkrt_last_error_text().decode())
        print(y.raw.hex(), "vkrt.ops.registry" in sys.modules)
        library.vkrt_close(program)
    """
    library = config.folder() / config.LIBRARY
    forbidden = "hashlib numpy"
    later = MLP
    if kind == "compiled":
        later = tmp_path / "mlp.vkx"
        vkrt.compile(MLP, later)
    first, second = (run_python(code, str(path), str(library), words, VKRT_PLAN_CACHE=str(tmp_path)
                                ).split() for path, words in ((MLP, ""), (later, forbidden)))
    assert first == [second[0], "True"] and second[1] == "False"


def test_a_profile_names_operators(tmp_path):
    """The graph is made when somebody asks for its nodes."""
    loaded(MLP, tmp_path)
    with vkrt.load(MLP, plan_cache=tmp_path) as program:
        method = program.load_method("forward")
        assert not method.largest.graph.nodes
        rows = program.profile(*inputs_of(program), repeat=1).steps
        assert any(row.operator.startswith("aten.") for row in rows)
        assert method.graph.nodes and method.work.steps


def test_other_methods(tmp_path):
    """They are read when they are asked for."""
    with vkrt.load(MODELS / "coder.pte", plan_cache=tmp_path) as program:
        names = program.method_names
        whole = [program.run(*examples_of(program, name), method=name) for name in names]
    assert len(names) > 1
    with vkrt.load(MODELS / "coder.pte", plan_cache=tmp_path) as program:
        assert program.method_names == names
        for name, expected in zip(names, whole):
            same_bits(program.run(*examples_of(program, name), method=name), expected)


@pytest.mark.parametrize("change", ["rewritten", "other time", "replaced"])
def test_a_program_that_was_changed(copy_of, tmp_path, change):
    path = copy_of("mlp")
    loaded(path, tmp_path / "plans")
    if change == "rewritten":
        path.write_bytes(damaged(path.read_bytes(), "flip"))
    elif change == "other time":
        os.utime(path, ns=(1, 1))
    else:
        copy_of("toy").replace(path)
    loaded(path, tmp_path / "plans")
    assert len(plans(tmp_path / "plans")) == 2


def test_a_file_that_was_changed_just_now(copy_of, tmp_path, monkeypatch):
    """It might be changed again without another time of change."""
    monkeypatch.setattr(plan_cache, "RECENT_NS", 2_000_000_000)
    loaded(copy_of("mlp"), tmp_path / "plans")
    assert not plans(tmp_path / "plans")


def test_other_options_and_devices(tmp_path):
    loaded(MLP, tmp_path)
    loaded(MLP, tmp_path, storage="buffer")
    assert len(plans(tmp_path)) == 2
    with vkrt.Device.open() as device:
        row = policy.policy_of(device.info)
    with policy.overridden(replace(row, winograd=not row.winograd)):
        loaded(MLP, tmp_path)
    assert len(plans(tmp_path)) == 3


def test_other_extension_modules(tmp_path, monkeypatch):
    """Those of another build may ask for other memory: a plan is for one build."""
    present, other = plan_cache.shared_object(), tmp_path / "other.so"
    shutil.copy(present, other)
    assert os.path.samefile(present, sys.modules["vkrt.vk.device"].__file__)
    loaded(MLP, tmp_path)
    monkeypatch.setattr(plan_cache, "shared_object", lambda: str(other))
    loaded(MLP, tmp_path)
    assert len(plans(tmp_path)) == 2
    monkeypatch.setattr(plan_cache, "shared_object", lambda: None)  # an archive: no plans
    loaded(MLP, tmp_path)
    assert len(plans(tmp_path)) == 2


@pytest.mark.parametrize("damage", ["length", "flip", "empty", "header"])
def test_a_damaged_plan(tmp_path, damage):
    """It is ignored and written anew."""
    first = loaded(MLP, tmp_path)
    path, = plans(tmp_path)
    good = path.read_bytes()
    path.write_bytes(damaged(good, damage))
    same_bits(loaded(MLP, tmp_path)[0], first[0])
    assert path.read_bytes() == good


@pytest.mark.parametrize("change", ["writable file", "writable folder", "link", "others"])
def test_a_plan_that_others_may_have_written(tmp_path, monkeypatch, change):
    """It is not used: its kernels might do anything."""
    folder = tmp_path / "plans"
    first = loaded(MLP, folder)
    path, = plans(folder)
    if change == "writable file":
        path.chmod(0o666)
    elif change == "writable folder":
        folder.chmod(0o777)
    elif change == "link":
        shutil.move(path, tmp_path / "plan")
        path.symlink_to(tmp_path / "plan")
    elif os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    made, graph = [], Description.graph
    monkeypatch.setattr(Description, "graph",
                        lambda self, method: made.append(method) or graph(self, method))
    same_bits(loaded(MLP, folder)[0], first[0])
    assert made == ["forward"]


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch evil",)


@pytest.mark.parametrize("content", [b"", b"no plan", pickle.dumps(Evil()), bytes(4096),
                                     b"\xff" * 4096],
                         ids=["empty", "noise", "call", "zeros", "ones"])
@pytest.mark.parametrize("has_header", [False, True])
def test_content_that_is_no_plan(content, has_header, tmp_path, monkeypatch):
    """Nothing but a plan is made of it, whatever its checksum says."""
    monkeypatch.chdir(tmp_path)
    vkrt.load(MLP, plan_cache=tmp_path / "plans").close()
    header = plans(tmp_path / "plans")[0].read_bytes()[:flat.HEADER_BYTES - 8]
    content += bytes(-len(content) % 8)
    header += flat.checksum(content).to_bytes(8, "little")
    assert plan_cache.from_bytes(header + content if has_header else content, 1) is None
    assert os.listdir(tmp_path) == ["plans"]


def test_profiling_by_a_plan_that_would_be_another_now(tmp_path, monkeypatch):
    """Its steps would not be those that run."""
    loaded(MLP, tmp_path)
    with vkrt.load(MLP, plan_cache=tmp_path) as program:
        find = Description.compile
        monkeypatch.setattr(Description, "compile", lambda self, method, device, options: find(
            self, method, device, replace(options, storage="buffer", fusions="off")))
        with pytest.raises(UnsupportedError, match="plan_cache='off'"):
            program.profile(*inputs_of(program), repeat=1)
        program.run(*inputs_of(program))


def test_what_is_not_kept(tmp_path, monkeypatch):
    """Programs in memory, and where the option says so."""
    loaded(MLP.read_bytes(), tmp_path)
    loaded(MLP, "off")
    monkeypatch.setenv("VKRT_PLAN_CACHE", "off")
    loaded(MLP, "auto")
    assert not plans(tmp_path)
    monkeypatch.setenv("VKRT_PLAN_CACHE", str(tmp_path))
    loaded(MLP, "auto")
    assert len(plans(tmp_path)) == 1
    for option in (3, ""):
        with pytest.raises(vkrt.InputError, match="plan_cache="):
            vkrt.load(MLP, plan_cache=option)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    loaded(MLP, tmp_path / "file" / "below")


def test_an_import_that_is_refused_now(tmp_path, monkeypatch):
    """A plan with mapped weights holds no longer where the driver does not map them: the program
    is read, and planned otherwise."""
    options = LoadOptions(plan_cache=tmp_path)
    with closing(Program(MLP, options=options)) as program:
        if not program.load_method("forward").plan.placements.weights("map"):
            pytest.skip("nothing is mapped on this device")
    monkeypatch.setattr(mapping, "HostImport", raising(UnsupportedError, "no import today"))
    with closing(Program(MLP, options=options)) as program:
        assert not program.load_method("forward").plan.placements.weights("map")
        program.run(*inputs_of(program))


# Where no plan is kept, the report says why


@pytest.mark.parametrize("name, why", [
    ("numbers", "what its inputs hold decides sizes"),
    ("counted", "the data of a run decide sizes"),
])
def test_numbers_that_decide_sizes(name, why, tmp_path):
    with vkrt.load(MODELS / f"{name}.pte", plan_cache=tmp_path) as program:
        note, = program.memory.notes
    assert note.startswith("no plan of method 'forward' is kept for later loads: ") and why in note
    assert not plans(tmp_path)


def test_other_reasons(tmp_path, monkeypatch):
    def why(source, folder=tmp_path / "plans", method=None, **options):
        with vkrt.load(source, plan_cache=folder, **options) as program:
            if method is not None:
                program.load_method(method)
            return " ".join(program.memory.notes)

    path = MODELS / "pair-dyn.pte"
    assert why(path, "off") == ""
    assert "it is in memory" in why(path.read_bytes())
    (tmp_path / "file").write_bytes(b"")
    assert "can write" in why(path, tmp_path / "file" / "below")
    assert "'encode'" in why(MODELS / "coder.pte", method="encode")
    monkeypatch.setattr("vkrt.compiler.plan_cache.RECENT_NS", 10**20)
    assert "within the last two seconds" in why(path)
    monkeypatch.undo()
    monkeypatch.setattr("vkrt.compiler.plan_cache.RECENT_NS", 0)
    monkeypatch.setattr("vkrt.compiler.plan_cache.MAX_BYTES", 1000)
    assert "1,000 at most" in why(path)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("VKRT_PLAN_CACHE", raising=False)
    assert "no folder for caches" in why(path, "auto")
    assert not plans(tmp_path / "plans")
