"""Every call of the driver fails, one after the other, once and for good: an error of the right
kind within ten seconds, nothing left, and what says that it still works does."""

import json
import re

import pytest
from hostile.bodies import BODIES
from hostile_device import HERE, environment_of
from support import DEPTH, MODELS, run_python


@pytest.fixture(autouse=True)
def no_validation(monkeypatch):
    """It does not know of calls that the layer in front of the driver fails."""
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)


# Not marked `driver`: it is the layer that fails the calls.
@pytest.mark.parametrize("name", BODIES)
def test_any_call_may_fail(name, tmp_path):
    body = BODIES[name]
    printed = run_python("""
        import sys
        from hostile.trials import run_trials
        run_trials(*sys.argv[1:])
        """, name, "1" if DEPTH == "full" else "0", **environment_of(body.profile),
        XDG_CACHE_HOME=str(tmp_path))
    result = json.loads(printed.splitlines()[-1])
    assert result["faults"] == []
    assert [word for word in body.fails.split() if not result["failed"].get(f"vk{word}")] == []


def test_every_function_of_the_device_fails():
    """The layer can fail all that vkrt calls, and each of them fails in one of the tests."""
    text = (HERE.parent.parent / "vkrt" / "core" / "table.pxd").read_text()
    table = set(re.findall(r"VkResult \(\*(vk\w+)\)", text.split("struct DeviceTable")[1]))
    children, = re.findall(r"define VKRT_CHILDREN\(X\)((?:.*\\\n)+.*)", text)
    table |= {f"vkCreate{name}" for name in re.findall(r"X\((\w+)\)", children)}
    assert len(table) >= 30
    layer = (HERE / "failures.c").read_text().replace("CREATING(X, ", "X(Create")
    known = re.findall(r"\bX\((\w+)[,)]", layer)
    assert table <= {f"vk{name}" for name in known}
    failing = {f"vk{word}" for body in BODIES.values() for word in body.fails.split()}
    assert table <= failing


def test_programs_of_a_device_that_is_given_up():
    """All of them hear of it, also in a wait that has no end in the driver; the process ends. What
    stays is counted, and the driver's instance stays with it."""
    result = json.loads(run_python("""
        from hostile.trials import give_up_a_shared_device
        give_up_a_shared_device()
        """, **environment_of("intel")))
    (_, load), *runs = result["said"]
    assert "was given up" in load
    assert runs == [["one", "DeviceLostError"], ["other", "DeviceLostError"]]
    abandoned = result["left"].pop("abandoned")
    assert abandoned > 20
    assert result["left"] == {"instance": 1}


def test_a_run_that_no_fence_can_be_put_behind():
    """Its commands were submitted, and nothing more can be: nobody can tell when they are done. The
    process ends well, although the driver is at work: it compiles when it runs a kernel first."""
    printed = run_python("""
        import sys
        import vkrt
        from hostile.bodies import inputs_of
        from hostile.layer import FOR_GOOD, OUT_OF_HOST_MEMORY, Layer
        from vkrt.vk import live_objects

        program = vkrt.load(sys.argv[1])
        Layer().fail("vkQueueSubmit", 2, FOR_GOOD, OUT_OF_HOST_MEMORY)
        try:
            program.run_async(*inputs_of(program))
        except vkrt.DeviceLostError as error:
            print("given up" in str(error))
        program.close()
        print(live_objects()["abandoned"] > 0)
        """, str(MODELS / "mlp.pte"), **environment_of("intel"),
        MESA_SHADER_CACHE_DISABLE="true")
    assert printed.split() == ["True", "True"]


def test_zeros_of_all_states_are_one_submission():
    """A language model has dozens of caches, and each submission is waited for."""
    printed = run_python("""
        import sys
        import vkrt
        from hostile.layer import FOR_GOOD, OUT_OF_HOST_MEMORY, Layer

        with vkrt.load(sys.argv[1]) as program:
            layer = Layer()
            layer.fail("vkQueueSubmit", 2, FOR_GOOD, OUT_OF_HOST_MEMORY)
            program.reset_state()
            print("vkQueueSubmit" in layer.called(), layer.stop(), len(program.save_state()))
        """, str(MODELS / "kept_attention.pte"), **environment_of("nvidia"))
    assert printed.split() == ["True", "0", "4"]


def test_a_plan_for_want_of_memory_is_not_kept(tmp_path):
    """An import that fails once is tried again by the next load."""
    printed = run_python("""
        import sys
        import vkrt
        from hostile.layer import ONCE, OUT_OF_HOST_MEMORY, Layer

        def mapped(plan_cache=sys.argv[2]):
            with vkrt.load(sys.argv[1], plan_cache=plan_cache) as program:
                return program.memory.mapped > 0

        assert mapped("off")  # the driver is tried
        layer = Layer()
        layer.fail("vkGetMemoryHostPointerPropertiesEXT", 1, ONCE, OUT_OF_HOST_MEMORY)
        print(mapped())
        print(layer.stop(), mapped())
        """, str(MODELS / "mlp.pte"), str(tmp_path), **environment_of("apu"))
    assert printed.split() == ["False", "1", "True"]


def test_a_cache_that_cannot_be_read_leaves_the_file_as_it_is(tmp_path):
    """What a driver compiled before is not lost with one failed call."""
    printed = run_python("""
        import sys
        from pathlib import Path

        import vkrt
        from hostile.layer import FOR_GOOD, OUT_OF_HOST_MEMORY, Layer

        file = Path(sys.argv[1])
        with vkrt.load(sys.argv[2], pipeline_cache=str(file)):
            pass
        before, layer = file.read_bytes(), Layer()
        layer.fail("vkGetPipelineCacheData", 1, FOR_GOOD, OUT_OF_HOST_MEMORY)
        with vkrt.load(sys.argv[3], pipeline_cache=str(file)):
            pass
        print(layer.stop() > 0, len(before) > 0, file.read_bytes() == before)
        """, str(tmp_path / "cache"), str(MODELS / "mlp.pte"), str(MODELS / "toy.pte"),
        **environment_of("mali"))
    assert printed.split() == ["True", "True", "True"]
