"""Files of compiled programs, made and changed by tests."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from vkrt.compiled.file import HEAD, read
from vkrt.compiler.description import Description
from vkrt.executable import rows
from vkrt.graph.graph import Graph
from vkrt.memory.source import Source
from vkrt.method.instances import Shape


def smaller(info) -> tuple[int, ...]:
    """Sizes that a dynamic input may have."""
    return tuple(n - n % 4 - 4 if d in info.dynamic_dims else n for d, n in enumerate(info.sizes))


def rewritten(out, change) -> None:
    """The file with other records."""
    with closing(Source.open(out)) as source:
        compiled = read(source).read()
    data = out.read_bytes()
    magic, version, zero, start, _ = HEAD.unpack_from(data)
    records = rows.to_bytes(change(compiled))
    out.write_bytes(HEAD.pack(magic, version, zero, start, len(records)) + data[HEAD.size:start]
                    + records)


def as_methods(monkeypatch, **shapes) -> None:
    """Programs that are compiled then have these methods, each of them their "forward": at sizes of
    its inputs, or with None as it is."""
    of_file = Description.graph

    def graph(description: Description, name: str) -> Graph:
        found, sizes = of_file(description, "forward"), shapes[name]
        if sizes is not None:
            found = replace(Shape(sizes).resolve(found), input_names=found.input_names,
                            output_names=found.output_names)
        return replace(found, name=name)

    monkeypatch.setattr(Description, "method_names", property(lambda description: tuple(shapes)))
    monkeypatch.setattr(Description, "graph", graph)
