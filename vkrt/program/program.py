"""Program: a `.pte` file, or a compiled program, on a device."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from vkrt.compiler.description import Description
from vkrt.compiler.plan_cache import CachedPlan, PlanFiles
from vkrt.compiler.program_files import is_compiled
from vkrt.errors import ClosedError, PipelineError, UnsupportedError
from vkrt.executable.external_buffers import Semaphore
from vkrt.graph.graph import Graph
from vkrt.memory.reader import DEFAULT_WINDOW
from vkrt.method.arguments import MethodMetadata, metadata_of
from vkrt.method.device_bound import DeviceBound
from vkrt.method.executables import Ready
from vkrt.method.loaded import Loaded
from vkrt.method.method import Method
from vkrt.method.named_inputs import in_order
from vkrt.method.run import Run
from vkrt.method.states import State
from vkrt.plan.options import LoadOptions
from vkrt.program.cached import keep_plan, ready_of
from vkrt.program.outputs import converter
from vkrt.report.memory import MemoryReport
from vkrt.report.stopwatch import OnProgress
from vkrt.runtime.open_device import OpenDevice
from vkrt.runtime.refusals import note, refused_by
from vkrt.runtime.weight_store import WeightStore
from vkrt.runtime.weights import Weights
from vkrt.vk.device import Device
from vkrt.vk.memory import Allocator

if TYPE_CHECKING:
    import numpy as np

    from vkrt.compiled.program import CompiledProgram
    from vkrt.method.profile import Profile


def _described(source: Any, data_path: Any) -> Description | CompiledProgram:
    """The description of a program's file, which is read later; or a compiled program."""
    if is_compiled(source):
        from vkrt.compiled.program import CompiledProgram  # .pte programs do not need it

        return CompiledProgram(source, data_path)
    return Description(source, data_path, at_once=False)


class Program(DeviceBound):
    """A program loaded on a device. Made by `vkrt.load`; a context manager.

    Methods are loaded on first use (`load_method`, `run`), the one named "forward" (or the only
    one) at once. A weight that several methods read in the same layout is on the device once. With
    `memory_budget` or weights="stream" nothing is shared: each method is planned by itself. One run
    at a time per method; several programs and threads work side by side.
    """

    def __init__(self, source: Any, device: Any = None, options: LoadOptions | None = None,
                 data_path: Any = None, on_progress: OnProgress | None = None):
        self._report = MemoryReport()
        self._report.stopwatch.on_progress = on_progress
        self._options = options or LoadOptions()
        self._lock = threading.Lock()
        self._methods: dict[str, Method] = {}
        # What is known without the program's file
        self._names: tuple[str, ...] = ()
        self._constants: dict[str, tuple[Any, ...]] | None = None
        self._first: str | None = None  # the method that the load gets ready
        self._store = WeightStore()
        self._closed = False
        # What it has besides its methods; closed after them
        self._resources = ExitStack()
        self._description = self._resources.enter_context(closing(_described(source, data_path)))
        # None for a compiled program, which needs no cached plans
        self._plan_files: PlanFiles | None = None
        if isinstance(self._description, Description):
            self._plan_files = PlanFiles(self._description.sources, self._options)
            if not self._plan_files.any:
                self._description.read()
        self._report.stopwatch.mark("read the program")
        growth = self._report.growth
        growth.attribute("program")
        if self._options.prefetch != "none":
            # Read ahead while the driver starts and the graph is built: the file begins with what
            # the graph needs, and weights follow.
            self._description.source.prefetch(0, DEFAULT_WINDOW)
        try:
            is_given = isinstance(device, Device)
            self._device = device if is_given else self._resources.enter_context(
                Device.open(device, pipeline_cache=self._options.pipeline_cache))
            self._allocator = self._resources.enter_context(closing(Allocator(self._device)))
            self._report.stopwatch.mark("start the driver")
            growth.attribute("rest" if is_given else "driver")
            growth.holds_device = self._device.info.type == "cpu"
            self._load_first()
        except BaseException:
            self._release()
            raise
        finally:
            self._report.stopwatch.on_progress = None

    def _load_first(self) -> None:
        """Loads the method that is needed at once, by its cached plan if there is one."""
        files = self._plan_files
        if files is not None:
            device = OpenDevice(self._device, refused_by(self._device))
            cached = files.read(device)
            if cached is not None and self._load_cached(files, cached, device):
                return
        self._description.read()
        names = self.method_names
        self._first = "forward" if "forward" in names else names[0] if len(names) == 1 else None
        if self._first is not None:
            self.load_method(self._first)

    def _load_cached(self, files: PlanFiles, cached: CachedPlan, device: OpenDevice) -> bool:
        """Loads a method by its cached plan; returns False if the plan does not hold any more."""
        description, plan = self._description, cached.plan
        assert isinstance(description, Description)
        try:
            ready = ready_of(plan, files, description, device, self._options)
        except UnsupportedError:
            return False
        try:
            self._add(ready.executables.graph, ready)
        except PipelineError as error:
            if frozenset(device.refused).issuperset(error.shaders):
                raise
            note(self._device, error.shaders)
            return False
        self._names, self._first = plan.methods, plan.method
        self._constants = {method.name: method.values for method in cached.constants}
        return True

    def _add(self, graph: Graph, compiled: Ready | None = None) -> None:
        """Loads a method; `compiled` is what a file has of it, see `Method`."""
        if compiled is not None:
            self._report.stopwatch.mark("read the plan")
            self._report.growth.attribute("program")
        # A budget is planned for each method by itself, see `WeightStore`.
        store = None if self._options.has_budget else self._store
        self._methods[graph.name] = Method(
            graph, self._description.sources, self._device, options=self._options,
            report=self._report, store=store, allocator=self._allocator, compiled=compiled)
        self._report.file_plan += graph.file_arena

    def __repr__(self):
        name = self._description.source.name
        if self._closed:
            return f"<vkrt.Program {name}, closed>"
        methods = ", ".join(repr(self._methods[name].metadata) if name in self._methods else name
                            for name in self.method_names)
        return (f"<vkrt.Program {name} on {self._device.info.name}: "
                f"{methods}; {self._report.measured_peak:,} bytes at most>")

    def _repr_html_(self) -> str:
        """Inputs, outputs, bytes and placements as a table, for notebooks."""
        from vkrt.program.notebook import html_of  # which few ask for

        return html_of(self._description.source.name, self._device, self._methods.values(),
                       self._report)

    @property
    def method_names(self) -> tuple[str, ...]:
        """Names of the program's methods."""
        return self._names or self._description.method_names

    @property
    def constants(self) -> dict[str, tuple[Any, ...]]:
        """What the program says of itself: the values of the methods that only return numbers, such
        as "get_max_seq_len", by their names."""
        return self._description.constants if self._constants is None else self._constants

    @property
    def device(self) -> Device:
        """The device the program is on."""
        return self._device

    @property
    def memory(self) -> MemoryReport:
        """Bytes on the device: planned, measured, by phase."""
        return self._report

    def metadata(self, method: str = "forward") -> MethodMetadata:
        """Inputs and outputs of a method: names, sizes, dtypes.

        Raises:
            InputError: there is no such method.
        """
        if method in self._methods:
            return self._methods[method].metadata
        return metadata_of(self._description.graph(method))

    def load_method(self, name: str) -> Method:
        """The method, loaded onto the device if it is not yet.

        Raises:
            InputError: there is no such method.
            UnsupportedError: it uses operators vkrt does not have (all are named).
            VulkanError: the device failed; what the method had allocated is released.
            ForkedError: in a process that was forked after the program was loaded.
        """
        self._device.check_process()
        with self._lock:
            if self._closed:
                raise ClosedError("the program is closed; load it again")
            if name not in self._methods:
                self._report.stopwatch.start()
                self._report.growth.attribute("rest")
                self._load_method(name)
            return self._methods[name]

    def _loaded(self) -> list[Method]:
        """The methods that are loaded now (ForkedError)."""
        self._device.check_process()
        with self._lock:
            return list(self._methods.values())

    def _load_method(self, name: str) -> None:
        description, options = self._description, self._options
        if isinstance(description, Description):
            graph = description.graph(name)
            self._report.stopwatch.mark("build the graph")
            self._add(graph)
            assert self._plan_files is not None
            keep_plan(self._methods[name], self._first, description, self._plan_files)
        else:
            ready = description.prepare(name, self._device, options, self._bring)
            self._add(ready.executables.graph, ready)

    def _bring(self, ready: Ready) -> Weights:
        """Loads shared weights of a compiled program; see `CompiledProgram.prepare`."""
        self._report.stopwatch.mark("read the plan")
        return Loaded(ready.executables.graph, self._description.sources, self._device,
                      self._options, self._report, None, self._allocator, ready).weights_alone()

    def run(self, *inputs: Any, method: str = "forward", out: Sequence[Any] | None = None,
            state: State | None = None, outputs: str = "numpy", **named: Any) -> list[Any]:
        """Runs a method on arrays (numpy, torch, anything with DLPack or the buffer protocol);
        calling the program does the same.

        Args:
            inputs: one array per input of the method, with exactly its dtype and sizes (in dynamic
                dimensions also smaller); or one dictionary of arrays by name.
            out: arrays to write the outputs to, of the sizes they have at these inputs. Inputs and
                outputs may be `DeviceBuffer`s, too, see `run_async`.
            state: one of `new_state`, of this method; by default its first.
            outputs: "numpy", or "torch" for tensors over the same memory.
            named: inputs by the names in `metadata`. An input that has the name of an argument of
                this function goes into the dictionary.

        Returns:
            The outputs, as numpy arrays or PyTorch's tensors.

        Raises:
            InputError: an argument does not fit, or PyTorch is asked for and not installed.
            ClosedError: the program is closed.
            StateError: an earlier run failed while it changed the state.
            VulkanError: the device failed; ForkedError in a process that was forked after the
                program was loaded.
        """
        convert = None if outputs == "numpy" else converter(outputs)
        loaded = self.load_method(method)
        results = loaded.execute(in_order(inputs, named, loaded.metadata), out, state)
        return results if convert is None else [convert(result) for result in results]

    __call__ = run

    def run_async(self, *inputs: Any, method: str = "forward", out: Sequence[Any] | None = None,
                  state: State | None = None, wait: Sequence[Semaphore] = (),
                  signal: Sequence[Semaphore] = (), **named: Any) -> Run:
        """Begins a run and does not wait for its end, see `Method.start`.

        Inputs and outputs may be `DeviceBuffer`s of a host that has made the device itself (see
        `Device.adopt`): kernels then use them in place where they can, and no data passes through
        the CPU. Runs of several methods and programs are in progress side by side; the next call of
        the same method waits for its previous run.

        Args:
            inputs, out, named: as for `run`, or `DeviceBuffer`s.
            state: as for `run`.
            wait: the host's semaphores that the device waits for first.
            signal: the host's semaphores that the device signals when the run is done.

        Returns:
            A `Run`: `result()` waits and returns what `run` does; `await` does so in a coroutine.

        Raises:
            As `run`; `Run.result` raises what goes wrong later.
        """
        loaded = self.load_method(method)
        return loaded.start(in_order(inputs, named, loaded.metadata), out, state, wait, signal)

    def release_buffers(self) -> None:
        """Forgets all `DeviceBuffer`s that runs were given, so that the host may destroy them.

        Waits for runs in progress.
        """
        for loaded in self._loaded():
            loaded.release_buffers()

    def cancel(self, method: str = "forward") -> None:
        """Ends the run of a method that another thread is at, see `Method.cancel`."""
        loaded = self._methods.get(method)
        if loaded is not None:
            loaded.cancel()

    # States

    def new_state(self, method: str = "forward") -> State:
        """Makes one more state of a method, with the initial values: for instance the caches of
        another conversation. It takes `State.nbytes` of device memory and shares everything else.

        Runs over several states follow one another, also if several threads start them.

        Raises:
            InputError: there is no such method.
            DeviceMemoryError, VulkanError: nothing is left allocated.
        """
        return self.load_method(method).new_state()

    def save_state(self, method: str = "forward") -> dict[str, np.ndarray]:
        """The values of the buffers that a method changes in place, as arrays by name.

        A cache in 8 bits (`cache="int8"` of `load`) is saved as it is kept, int8 [batch, rows,
        heads, 4 + D], and loads with the same bits. An element is (q - zero point) * scale. The
        first 4 numbers of a head are the bytes of the scale, a float32; the other D are the q. The
        lowest byte of the scale is replaced by the zero point: in the scale its 8 bits count as 0.
        """
        return self.load_method(method).state.save()

    def load_state(self, values: Mapping[str, np.ndarray], method: str = "forward") -> None:
        """Sets the buffers that a method changes in place to values of `save_state`. These may come
        from another load of the program, with caches in the same precision.

        Raises:
            InputError: there is no such method, or the values are not of this method.
        """
        self.load_method(method).state.load(values)

    def reset_state(self, method: str | None = None) -> None:
        """Sets the buffers that methods change in place to their initial values.

        Otherwise these buffers keep their values from run to run, separately for each loaded
        method. States of `new_state` are not touched.

        Args:
            method: whose buffers are reset; those of all loaded methods by default.

        Raises:
            InputError: there is no such method.
            FormatError: the file was changed since it was opened.
            OSError: the file cannot be read.
        """
        if method is not None:
            self.load_method(method).state.reset()
            return
        for loaded in self._loaded():
            loaded.state.reset()

    def profile(self, *inputs: Any, method: str = "forward", repeat: int = 5,
                clock: str = "auto") -> Profile:
        """Times every step of a method on these inputs, see `Method.profile`.

        Returns:
            A `Profile`: rows of operators and kernels with seconds, bytes and arithmetic, as
            objects, a table or for JSON.
        """
        return self.load_method(method).profile(inputs, repeat=repeat, clock=clock)

    def close(self) -> None:
        """Releases everything; may be called twice.

        In a process that was forked after the program was loaded it only closes the files: what is
        on the device is the parent's.
        """
        if self._device.inherited:
            # The lock may be held by a thread that this process does not have.
            self._release()
            return
        with self._lock:
            self._release()

    def _release(self) -> None:
        self._closed = True
        for method in self._methods.values():
            method.close()
        self._resources.close()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
