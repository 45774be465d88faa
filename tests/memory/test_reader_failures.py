"""What goes wrong while reading: short files, errors of the disk, signals, wrong arguments."""

import errno
import mmap
import os
import re
import resource
import signal
import sys
import threading
from pathlib import Path

import pytest
from alarms import Interrupted, on_alarm
from host_packing import packing_of
from memory_samples import STRATEGIES, WAYS, Target, read_bytes, weight

from vkrt.errors import FormatError, InputError
from vkrt.memory.reader import Reader, Transfer, fail_read_after
from vkrt.memory.source import Source

MiB = 1 << 20


@pytest.mark.parametrize("name, options", WAYS)
def test_file_that_is_cut(name, options, path, source, data):
    """No SIGBUS: the end of the file is noticed before it is touched."""
    target = Target(len(data))
    with Reader([source], name, **options) as reader:
        os.truncate(path, 5 * MiB + 17)
        reader.run([Transfer(0, 0, 5 * MiB + 17, target.address)])
        assert target.bytes()[:5 * MiB + 17] == data[:5 * MiB + 17].tobytes()
        for start, nbytes in ((0, len(data)), (5 * MiB + 10, 8), (8 * MiB, 1)):
            with pytest.raises(FormatError, match=r"^fc1: bytes \d+ to \d+ are beyond the end of "
                               + re.escape(str(path)) + r" \(5242897 bytes\)$"):
                reader.run([Transfer(0, start, nbytes, target.address, name="fc1")])
            with pytest.raises(FormatError, match=r"^bytes \d+ to \d+ are beyond the end"):
                read_bytes(reader, 0, start, nbytes)
        assert read_bytes(reader, 0, 100, 10) == data[100:110].tobytes()


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("wrap", [False, True])
def test_bytes_beyond_the_end(name, wrap, source, data):
    used = Source.wrap(data.tobytes(), "weights") if wrap else source
    with Reader([used], name) as reader:
        for offset, nbytes in ((len(data) - 5, 6), (len(data) + 1, 0), (2**64 - 8, 16),
                               (8, 2**64 - 8)):
            with pytest.raises(FormatError, match=f"beyond the end of .*{len(data)} bytes"):
                reader.run([Transfer(0, offset, nbytes, 4096)])
    used.close()


@pytest.mark.parametrize("name, options", WAYS)
def test_read_error(name, options, path, source, data):
    """The error says which bytes of which file; the reader can be used again."""
    target = Target(len(data))
    transfers = [Transfer(0, i * MiB, MiB, target.address + i * MiB, name=f"w{i}")
                 for i in range(8)]
    with Reader([source], name, **options) as reader:
        fail_read_after(4)
        with pytest.raises(OSError, match=r"w\d: bytes \d+ to \d+ cannot be read: ") as failure:
            reader.run(transfers)
        assert failure.value.errno == errno.EIO and failure.value.filename == str(path)
        if reader.threads == 1:
            assert f"w3: bytes {3 * MiB} to {4 * MiB}" in str(failure.value)
            assert reader.statistics()["bytes"] == 3 * MiB
        assert reader.statistics()["scratch_bytes"] <= 20 * (MiB + 8192)
        fail_read_after(1)
        with pytest.raises(OSError, match="bytes 5 to 15 cannot be read"):
            read_bytes(reader, 0, 5, 10)
        fail_read_after(2)
        assert read_bytes(reader, 0, 5, 10) == data[5:15].tobytes()
        with pytest.raises(OSError, match="w1: bytes"):
            reader.read_transfer(transfers[1])
        fail_read_after(3)
        fail_read_after(-1)
        reader.run(transfers)
        assert target.bytes()[:8 * MiB] == data[:8 * MiB].tobytes()


def test_read_error_of_a_packed_weight(source):
    record = weight((500, 600), (1, 0), 4)
    packing = packing_of(record)
    target = Target(packing.target_bytes)
    with Reader([source]) as reader:
        fail_read_after(2)
        with pytest.raises(OSError, match=r"w: bytes \d+ to \d+ cannot be read"):
            reader.run([Transfer(0, 8, record.constant.nbytes, target.address, packing, name="w")])
        assert target.bytes()


def test_memory_that_is_not_there(source):
    """What the system itself reports, not an ordered failure."""
    with Reader([source], "pread") as reader:
        with pytest.raises(OSError) as failure:
            reader.run([Transfer(0, 0, 100, 4096)])
        assert failure.value.errno == errno.EFAULT


def test_bytes_in_memory_do_not_fail(data):
    with Reader([Source.wrap(data)]) as reader:
        fail_read_after(1)
        assert read_bytes(reader, 0, 1, 5) == data[1:6].tobytes()


@pytest.mark.parametrize("threads", [1, 4])
def test_interrupted(threads, source, data):
    """A signal ends the run when its handler raises; no thread goes on writing."""
    def handler(number, frame):
        raise Interrupted

    target = Target(len(data))
    transfers = [Transfer(0, 0, len(data), target.address)] * 3000
    with on_alarm(handler), Reader([source], threads=threads) as reader:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupted):
            reader.run(transfers)
        assert reader.statistics()["bytes"] < 3000 * len(data)
        target.array[64:-64] = 0
        assert not any(target.bytes())
        reader.run(transfers[:1])
        assert target.bytes() == data.tobytes()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_system_without_more_threads(source, data):
    """In an address space that has no room for another stack the calling thread does it all."""
    target = Target(len(data))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before, event, waiting = resource.getrlimit(resource.RLIMIT_AS), threading.Event(), []
    with Reader([source], threads=3) as reader:
        resource.setrlimit(resource.RLIMIT_AS, (pages * mmap.PAGESIZE + 2 * MiB, before[1]))
        try:
            with pytest.raises(RuntimeError):  # memory of threads that ended is used first
                for _ in range(100):
                    waiting.append(threading.Thread(target=event.wait))
                    waiting[-1].start()
            reader.run([Transfer(0, 0, len(data), target.address)])
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
            event.set()
            for thread in waiting[:-1]:
                thread.join()
    assert target.bytes() == data.tobytes()


def test_arguments_of_a_reader(source):
    with pytest.raises(InputError, match="'fast': expected 'auto', 'pread', 'willneed', "):
        Reader([source], "fast")
    for options in ({"threads": 0}, {"threads": 257}, {"window": 0}):
        with pytest.raises(InputError, match="at least 1 byte and 1 to 256 threads"):
            Reader([source], **options)
    with Reader([source]) as reader:
        with pytest.raises(InputError, match="w: source 1 of 1"):
            reader.run([Transfer(1, 0, 1, 4096, name="w")])
        with pytest.raises(InputError, match="source 1 of 1"):
            read_bytes(reader, 1, 0, 1)
        with pytest.raises(InputError, match="source 1 of 1"):
            reader.start_ahead(1, 0, 1)


def test_arguments_of_a_transfer():
    packing = packing_of(weight((10, 6, 3, 3), (0, 2, 3, 1), 4))
    with pytest.raises(InputError, match="a transfer: 8 bytes to nowhere"):
        Transfer(0, 0, 8, 0)
    with pytest.raises(InputError, match="w: rows 8 to 11 of 10"):
        Transfer(0, 0, 3 * packing.row_bytes, 64, packing, 8, 3, "w")
    with pytest.raises(InputError, match="w: rows 11 to "):
        Transfer(0, 0, 0, 64, packing, 11, name="w")
    with pytest.raises(InputError, match=f"2 rows need {2 * packing.row_bytes} bytes, not "):
        Transfer(0, 0, 2 * packing.row_bytes - 1, 64, packing, 0, 2)
    transfer = Transfer(2, 5, packing.source_bytes, 64, packing, name="w")
    assert (transfer.source, transfer.offset, transfer.name) == (2, 5, "w")
    assert transfer.nbytes == packing.source_bytes and transfer.packing is packing


def test_closed(path, data):
    source = Source.open(path)
    reader = Reader([source])
    source.close()
    # The reader keeps what it needs.
    assert read_bytes(reader, 0, 3, 9) == data[3:12].tobytes()
    reader.close()
    reader.close()
    for call in (lambda: reader.run([]), lambda: read_bytes(reader, 0, 0, 1),
                 lambda: reader.start_ahead(0, 0, 1),
                 lambda: reader.read_transfer(Transfer(0, 0, 1, 64))):
        with pytest.raises(ValueError, match="the reader is closed"):
            call()
    with pytest.raises(ValueError, match="is closed"):
        Reader([source])
