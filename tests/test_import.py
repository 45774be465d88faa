"""What importing vkrt brings, and what it leaves until it is used."""

import inspect
import sys
from pathlib import Path

import pytest
from support import MODELS, run_python

import vkrt
from vkrt.extensions import MODULES


@pytest.mark.parametrize("name", vkrt.__all__)
def test_every_name_is_there(name):
    value = getattr(vkrt, name)
    assert name in dir(vkrt)
    if inspect.isclass(value):
        assert value.__name__ == name


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="'vkrt' has no attribute 'Programme'"):
        vkrt.Programme  # noqa: B018
    with pytest.raises(ImportError):
        from vkrt import Programme  # noqa: F401


def test_nothing_is_imported_early():
    """Neither Vulkan nor a planner: a process that only asks for a name of an exception pays for
    nothing else."""
    loaded = run_python("import sys, vkrt; print(*sys.modules)").split()
    assert {name for name in loaded if name.startswith("vkrt.")} == {
        "vkrt.errors", "vkrt.extensions", "vkrt.version"}


def test_a_python_without_its_lock_is_refused():
    """In one sentence, before an extension module is loaded; with the lock nothing is said."""
    code = """
        import sys
        sys._is_gil_enabled = lambda: sys.argv[1] == "on"
        try:
            import vkrt
        except ImportError as error:
            print(error)
        print(sorted(name for name in sys.modules if name.startswith("vkrt.vk")))
    """
    said, loaded = run_python(code, "off").splitlines()
    assert said == ("vkrt needs the lock that this free-threaded Python runs without: start it "
                    "with PYTHON_GIL=1 in the environment, or use the usual Python")
    assert loaded == "[]" and run_python(code, "on").splitlines() == ["[]"]


@pytest.mark.driver
def test_a_load_brings_no_numpy():
    """A host in C, whose tensors are no arrays, does not wait for it."""
    path = str(MODELS / "mlp.pte")
    assert run_python(f"import sys, vkrt; vkrt.load({path!r}); print('numpy' in sys.modules)"
                      ).split() == ["False"]


def test_extension_modules_share_an_object():
    from vkrt.memory import reader
    from vkrt.runtime import compute_graph
    from vkrt.vk import device, resource

    assert device.__file__ == resource.__file__ == reader.__file__ == compute_graph.__file__
    files = {module.__file__: name for name, module in sys.modules.items()
             if name.startswith(("vkrt.memory.", "vkrt.runtime.", "vkrt.vk."))
             and not str(module.__file__).endswith(".py")}
    assert len(files) == 1
    with pytest.raises(ImportError):
        import vkrt.vk.nothing  # noqa: F401


@pytest.mark.parametrize("package", MODULES)
def test_every_extension_module_is_named(package):
    folder = Path(__file__).parent.parent / "vkrt" / package
    assert set(MODULES[package].split()) == {path.stem for path in folder.glob("*.pyx")}
