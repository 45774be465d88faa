"""Makes the files of one network: an input, the result of eager PyTorch, and a model per format.

    PYTHON make.py NETWORK FOLDER

Prints, as JSON, the shape of the input and why a format could not be made, where one could not.
"""

import json
import sys
import traceback
import warnings
from pathlib import Path

import networks
import torch
from exporting import lower


def write_xnnpack(module, x, path):
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    edge = to_edge_transform_and_lower(torch.export.export(module, (x,)),
                                       partitioner=[XnnpackPartitioner()])
    path.write_bytes(edge.to_executorch().buffer)


# file -> what writes it
FORMATS = {
    "vulkan.pte": lambda module, x, path: path.write_bytes(lower(module, (x,))),
    "xnnpack.pte": write_xnnpack,
    "model.onnx": lambda module, x, path: torch.onnx.export(
        module, (x,), path, input_names=["x"], output_names=["y"], dynamo=False),
    "traced.pt": lambda module, x, path: torch.jit.save(torch.jit.trace(module, x), str(path)),
    "weights.pt": lambda module, x, path: torch.save(module.state_dict(), path),
}


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore")
    module, x = networks.make(name)
    with torch.no_grad():
        result = module(x)
    if not torch.isfinite(result).all():
        raise SystemExit(f"{name}: an output is not finite")
    x.numpy().tofile(folder / "input.bin")
    result.contiguous().numpy().tofile(folder / "expected.bin")
    failures = {}
    for file, write in FORMATS.items():
        try:
            with torch.no_grad():
                write(module, x, folder / file)
        except Exception as error:  # whatever an exporter raises, the others' formats can be made
            traceback.print_exc()
            failures[file] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"[:200]
    print(json.dumps({"shape": list(x.shape), "failures": failures}))


if __name__ == "__main__":
    main()
