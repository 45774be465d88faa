"""Arrays over HTTP: the V2 inference protocol of KServe and Triton, and `/v1/run`."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vkrt.method.arguments import TensorInfo
from vkrt.program.program import Program
from vkrt.serve.service import Limits, Refused, Service, object_of, taken
from vkrt.version import __version__

NPY = b"\x93NUMPY"
KINDS = {"f": "FP", "i": "INT", "u": "UINT"}
# The header with the length of the JSON, in the protocol's extension; binary data follows the JSON
JSON_LENGTH = "inference-header-content-length"


class ArrayService(Service):
    """Serves a method of a program; runs follow one another."""

    def __init__(self, program: Program, method: str, name: str, limits: Limits):
        super().__init__(program, name, limits, at_once=1)
        self.method = method
        self.metadata = program.metadata(method)

    def routes(self) -> list[Route]:
        model = f"/v2/models/{self.name}"
        return [Route("/v1/run", self.run, methods=["POST"]), Route("/v2", self.server),
                Route("/v2/health/live", self.health), Route("/v2/health/ready", self.health),
                Route(model, self.model), Route(f"{model}/ready", self.health),
                Route(f"{model}/infer", self.infer, methods=["POST"])]

    async def server(self, request: Request) -> Response:
        return JSONResponse({"name": "vkrt", "version": __version__,
                             "extensions": ["binary_tensor_data"]})

    async def model(self, request: Request) -> Response:
        """The inputs and outputs; a size that may be less than a bound is -1."""
        def described(infos: Sequence[TensorInfo]) -> list[dict[str, Any]]:
            return [{"name": info.name, "datatype": _datatype(info.dtype),
                     "shape": [-1 if d in info.dynamic_dims else s
                               for d, s in enumerate(info.sizes)]}
                    for info in infos if info.dtype != "none"]

        return JSONResponse({"name": self.name, "versions": ["1"], "platform": "vkrt",
                             "inputs": described(self._free),
                             "outputs": described(self.metadata.outputs)})

    async def run(self, request: Request) -> Response:
        """Runs on arrays in JSON, or on one .npy array; the answer has the same format."""
        body = await self.body_of(request)
        if body.startswith(NPY):
            info, = self._free if len(self._free) == 1 else (None,)
            if info is None or len(self.metadata.outputs) != 1:
                raise Refused(400, "an .npy body is for methods of one input and one output")
            output, = await self._outputs(request, {info.name: _of_npy(body)})
            file = io.BytesIO()
            np.save(file, output)
            return Response(file.getvalue(), media_type="application/x-npy")
        given = taken(object_of(body), "inputs", (list, dict), [])
        if isinstance(given, list):
            if len(given) != len(self._free):
                raise Refused(400, f"inputs: expected {len(self._free)}, got {len(given)}")
            given = dict(zip((info.name for info in self._free), given))
        arrays = {info.name: _array(given[info.name], info) for info in self._free
                  if info.name in given}
        outputs = await self._outputs(request, {**given, **arrays})
        return _json({"outputs": {info.name: output.tolist() for info, output
                                  in zip(self.metadata.outputs, outputs)}})

    async def infer(self, request: Request) -> Response:
        """Runs as the V2 protocol has it, with its extension for binary data."""
        body = await self.body_of(request)
        header = request.headers.get(JSON_LENGTH, str(len(body)))
        length = int(header) if header.isdecimal() else len(body) + 1
        if length > len(body):
            raise Refused(400, f"{JSON_LENGTH}: not the length of the JSON in this body")
        asked, rest = object_of(body[:length]), memoryview(body)[length:]
        arrays: dict[str, Any] = {}
        infos = {info.name: info for info in self._free}
        for given in taken(asked, "inputs", list, []):
            if not isinstance(given, dict):
                raise Refused(400, "inputs: expected objects")
            name = taken(given, "name", str, "")
            info = infos.get(name)
            if info is None or taken(given, "datatype", str) != _datatype(info.dtype):
                raise Refused(400, f"input '{name}': expected one of " + ", ".join(
                    f"'{i.name}' ({_datatype(i.dtype)})" for i in self._free))
            size = taken(taken(given, "parameters", dict, {}), "binary_data_size", int)
            if size is None:
                array = _array(taken(given, "data", list, []), info)
            else:
                if not 0 <= size <= len(rest) or size % np.dtype(info.dtype).itemsize:
                    raise Refused(400, f"input '{name}': {size} bytes are not there")
                array = np.frombuffer(rest[:size], info.dtype)
                rest = rest[size:]
            arrays[name] = _shaped(array, taken(given, "shape", list, []), name)
        wanted = {taken(o, "name", str): o for o in taken(asked, "outputs", list, [])
                  if isinstance(o, dict)}
        unknown = set(wanted) - {info.name for info in self.metadata.outputs}
        if unknown:
            raise Refused(400, f"there is no output '{unknown.pop()}'")
        binary = taken(taken(asked, "parameters", dict, {}), "binary_data_output", bool, False)
        found, data = [], []
        for info, output in zip(self.metadata.outputs, await self._outputs(request, arrays)):
            if wanted and info.name not in wanted or info.dtype == "none":
                continue
            described = {"name": info.name, "datatype": _datatype(str(output.dtype)),
                         "shape": list(output.shape)}
            options = taken(wanted.get(info.name, {}), "parameters", dict, {})
            if taken(options, "binary_data", bool, binary):
                data.append(output.tobytes())
                found.append({**described, "parameters": {"binary_data_size": len(data[-1])}})
            else:
                found.append({**described, "data": output.ravel().tolist()})
        answer = {"model_name": self.name, "model_version": "1", "outputs": found}
        return _json({**answer, "id": asked["id"]} if "id" in asked else answer, data)

    @property
    def _free(self) -> list[TensorInfo]:
        """The inputs that take more than one value."""
        return [info for info in self.metadata.inputs if not info.fixed]

    async def _outputs(self, request: Request, arrays: Mapping[str, Any]) -> list[np.ndarray]:
        names = [info.name for info in self._free]
        if set(arrays) != set(names):
            raise Refused(400, f"expected inputs {', '.join(names)}, got "
                               f"{', '.join(map(str, arrays)) or 'none'}")
        inputs = [info.fixed[0] if info.fixed else arrays[info.name]
                  for info in self.metadata.inputs]

        def steps() -> Generator[list[Any], None, None]:
            yield self.program.run(*inputs, method=self.method)

        outputs, = await self.all_of(request, self.begin(steps(), self.deadline()))
        return [np.asarray(output) for output in outputs]


def _datatype(dtype: str) -> str:
    """The protocol's name of a dtype."""
    kind = np.dtype(dtype)
    return "BOOL" if kind.kind == "b" else f"{KINDS[kind.kind]}{8 * kind.itemsize}"


def _array(data: Any, info: TensorInfo) -> np.ndarray:
    try:
        return np.array(data, info.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise Refused(400, f"input '{info.name}': not an array of {info.dtype}: {error}") from error


def _shaped(array: np.ndarray, shape: list[Any], name: str) -> np.ndarray:
    if (not all(isinstance(size, int) and size >= 0 for size in shape)
            or math.prod(shape) != array.size):
        raise Refused(400, f"input '{name}': {array.size} numbers are no array of {shape}")
    return array.reshape(shape)


def _of_npy(body: bytes) -> np.ndarray:
    """The array in an .npy file, without a copy: no memory is allocated for the sizes it claims."""
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        read = (np.lib.format.read_array_header_1_0 if version == (1, 0)
                else np.lib.format.read_array_header_2_0)
        shape, is_fortran, dtype = read(file)
        array = np.frombuffer(body, dtype, offset=file.tell())
        return array.reshape(shape, order="F" if is_fortran else "C")
    except ValueError as error:
        raise Refused(400, f"not an .npy file: {error}") from error


def _json(answer: Any, data: Sequence[bytes] = ()) -> Response:
    """JSON, with NaN and Infinity as Python writes and reads them, and binary data behind it."""
    text = json.dumps(answer).encode()
    headers = {JSON_LENGTH: str(len(text))} if data else {}
    return Response(b"".join((text, *data)), headers=headers, media_type=(
        "application/octet-stream" if data else "application/json"))
