"""Runs a model with ONNX Runtime on the CPU; see timing.py."""

import onnxruntime
import timing


def load(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


timing.measure(load, {"version": onnxruntime.__version__})
