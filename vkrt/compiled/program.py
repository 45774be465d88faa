"""A compiled program as a `vkrt.Program` reads it: in the place of a program's description."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cached_property
from typing import Any, NoReturn

from vkrt.compiled.file import read
from vkrt.compiler.plan_cache import graph_of, shape_plan
from vkrt.compiler.program_files import data_files
from vkrt.compiler.shape import Shape
from vkrt.errors import InputError, UnsupportedError
from vkrt.executable.modules import another_shader, check_interfaces
from vkrt.executable.program import Compiled, CompiledMethod, CompiledTarget, shaders_of
from vkrt.graph.graph import Graph
from vkrt.memory.sha256 import sha256
from vkrt.memory.source import Source
from vkrt.method.executables import Executables, Ready
from vkrt.plan.options import LoadOptions
from vkrt.runtime.fit import fitted
from vkrt.runtime.mapping import mapper_of
from vkrt.runtime.weight_store import SharedWeights
from vkrt.runtime.weights import Weights
from vkrt.shader import shader_library

# Options of a load that a compiled program leaves open
OPEN = ("prefetch", "keep_cached", "pipeline_cache", "plan_cache")


class CompiledProgram:
    """The methods of a compiled program.

    Raises:
        OSError: the file cannot be read.
        FormatError: it is no whole file of a compiled program.
        InputError: there is a data path, which a compiled program does not need.
    """

    def __init__(self, source: str | os.PathLike[str], data_path: Any = None):
        if data_files(data_path):
            raise InputError(f"data_path={data_path!r}: {os.fspath(source)} is a compiled program "
                             "and has all of its data; expected none")
        self.source = Source.open(source)
        self.sources = (self.source,)
        # Groups of shared weights on the device, by the numbers of the target and of the group
        self._shared: dict[tuple[int, int], Weights] = {}
        try:
            self._file = read(self.source)
            self.compiled: Compiled = self._file.read()
        except BaseException:
            self.close()
            raise

    @property
    def method_names(self) -> tuple[str, ...]:
        return self.compiled.targets[0].methods[0].largest.methods

    @cached_property
    def constants(self) -> dict[str, tuple[Any, ...]]:
        """The results of the methods that only return numbers, by the method's name."""
        return {method.name: method.values for method in self.compiled.constants}

    def graph(self, method: str) -> Graph:
        """The graph of a method, without its nodes (InputError: there is no such method)."""
        if method in self.constants:
            return Graph(method, [], list(self.constants[method]))
        return graph_of(self.targets_of(method)[0][1].largest)

    def prepare(self, method: str, device: Any, options: LoadOptions,
                bring: Callable[[Ready], Weights]) -> Ready:
        """A method for a device, of the first target that fits. The shared weights that it reads
        are on the device then. The caller closes the result.

        Args:
            bring: brings shared weights to the device, closes the `Ready` that it was given for
                that, and returns the weights, which the caller closes.

        Raises:
            InputError: there is no such method, or an option is given that was decided when the
                program was compiled.
            UnsupportedError: no target fits, or this build of vkrt has other shaders.
        """
        for option in fields(LoadOptions):
            if option.name not in OPEN and getattr(options, option.name) != option.default:
                raise InputError(f"{option.name}={getattr(options, option.name)!r}: "
                                 f"{self.source.name} is a compiled program, for which that was "
                                 "decided when it was compiled; compile it so")
        refused = []
        for number, found in self.targets_of(method):
            target = self.compiled.targets[number]
            self._check_shaders(target, found)
            try:
                ready, new = self._all_ready(number, found, device, options)
            except UnsupportedError as error:
                refused.append(f"for {target.device}: {error}")
                continue
            return ready._replace(shared=self._take(number, found, ready, new, bring))
        raise UnsupportedError(f"{self.source.name} was not compiled for {device.info.name}, and "
                               f"what it has does not fit ({'; '.join(refused)}); compile the "
                               "program for this device")

    def _all_ready(self, target: int, method: CompiledMethod, device: Any, options: LoadOptions,
                      ) -> tuple[Ready, dict[int, Ready]]:
        """A method of a target, made ready for a device, and, by number, the shared weights that it
        reads and that are not on the device yet. Raises UnsupportedError if they do not fit."""
        new: dict[int, Ready] = {}
        try:
            for use in method.shared:
                known = self._shared.get((target, use.number))
                if known is None or known.closed:
                    new[use.number] = self._ready(
                        target, self.compiled.targets[target].shared[use.number], device, options)
            return self._ready(target, method, device, options), new
        except BaseException:
            _close_all(new.values())
            raise

    def _take(self, target: int, method: CompiledMethod, ready: Ready,
              new: dict[int, Ready], bring: Callable[[Ready], Weights]) -> SharedWeights:
        """The shared weights that a method reads; those in `new` are brought to the device. If that
        fails, nothing of the method is left."""
        places: dict[int, tuple[Weights, int]] = {}
        owners: list[Weights] = []
        try:
            for use in method.shared:
                key = target, use.number
                if use.number in new:
                    self._shared[key] = bring(new.pop(use.number))
                else:
                    self._shared[key].retain()
                owners.append(self._shared[key])
                places.update({storage: (owners[-1], there)
                               for there, storage in enumerate(use.storages)})
        except BaseException:
            _close_all((ready, *new.values(), *owners))
            raise
        return SharedWeights(places, tuple(owners))

    def _ready(self, target: int, method: CompiledMethod, device: Any,
                  options: LoadOptions) -> Ready:
        """A method of a target, or a group of its shared weights, made ready for a device. Raises
        UnsupportedError if it does not fit."""
        found = self.compiled.targets[target]
        number = next(number for number, one in enumerate((*found.methods, *found.shared))
                      if one is method)
        first, *further = fitted(self._file, target, number, method, device)
        others = {Shape(shape.inputs): shape_plan(method.plan_at(shape, executable))
                  for shape, executable in zip(method.others, further)}
        largest = shape_plan(method.largest._replace(executable=first))
        mapper = mapper_of(first, device, self.sources, options.weights == "map")
        return Ready(Executables(largest.graph, largest, others, self.whole), mapper)

    def targets_of(self, name: str) -> list[tuple[int, CompiledMethod]]:
        """A method of each target, with the number of the target (InputError: there is none)."""
        found = [(number, method) for number, target in enumerate(self.compiled.targets)
                 for method in target.methods if method.name == name]
        if not found:
            raise InputError(f"no method '{name}' in {self.source.name}; it has "
                             f"{', '.join(self.method_names)}")
        return found

    def _check_shaders(self, target: CompiledTarget, method: CompiledMethod) -> None:
        """Makes sure that the file names the installed shaders, which are the ones that run."""
        names = set(shaders_of([executable for loaded in target.loaded_for(method)
                                for executable in loaded.executables]))
        modules = [module for module in self.compiled.modules if module.name in names]
        try:
            check_interfaces(modules)
            for module in modules:
                if sha256(shader_library().get(module.name).spirv).hex() != module.sha256:
                    raise another_shader(module.name)
        except UnsupportedError as error:
            raise UnsupportedError(
                f"{self.source.name}: {error} (it was compiled by vkrt {self.compiled.vkrt}); "
                "compile the program again") from error

    # What a program's file has and a compiled program does not have

    def whole(self) -> NoReturn:
        """There is no graph with nodes, and no command list."""
        raise UnsupportedError(f"{self.source.name} is a compiled program and has no graph; load "
                               f"{self.compiled.program}, of which it was made")

    def read(self) -> None:
        """It is read already."""

    def close(self) -> None:
        self.source.close()


def _close_all(things: Iterable[Any]) -> None:
    for thing in things:
        thing.close()
