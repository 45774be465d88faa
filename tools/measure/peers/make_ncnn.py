"""Converts a traced module for ncnn with pnnx, in float32: FOLDER/traced.pt -> model.ncnn.*

    PYTHON make_ncnn.py FOLDER SIZE...

pnnx is a program in its package; importing the package would need PyTorch.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

folder, sizes = sys.argv[1], sys.argv[2:]
program = Path(find_spec("pnnx").origin).parent / "pnnx"
files = [f"{key}=model.{name}" for key, name in (
    ("pnnxparam", "pnnx.param"), ("pnnxbin", "pnnx.bin"), ("pnnxpy", "pnnx.py"),
    ("pnnxonnx", "pnnx.onnx"), ("ncnnparam", "ncnn.param"), ("ncnnbin", "ncnn.bin"),
    ("ncnnpy", "ncnn.py"))]
sys.exit(subprocess.call([str(program), "traced.pt", f"inputshape=[{','.join(sizes)}]", "fp16=0",
                          *files], cwd=folder))
