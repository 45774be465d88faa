"""Reading smaps and the system's setting for huge pages, from made-up files."""

from __future__ import annotations

import os
import sys

import pytest
import smaps

TEXT = """\
55d0c0000000-55d0c0002000 r--p 00000000 fe:00 260386                     /usr/lib/a file.so
Size:                  8 kB
Rss:                   8 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
7f0000000000-7f0000300000 rw-p 00000000 00:00 0
Size:               3072 kB
Rss:                2048 kB
Anonymous:          2048 kB
AnonHugePages:      2048 kB
THPeligible:           1
7f0000300000-7f0000380000 ---p 00000000 00:00 0
Rss:                   0 kB
7f0000380000-7f0000400000 rw-p 00000000 00:00 0                          [anon:pool]
Rss:                 512 kB
Anonymous:           512 kB
7f0000400000-7f0000500000 rw-p 00000000 00:00 0
Rss:                   0 kB
7f1000000000-7f1000100000 rw-s 00000000 00:05 7                          /memfd:x (deleted)
Rss:                  64 kB
7f2000000000-7f2000100000 rw-p 00000000 00:00 0                          [heap]
Rss:                  16 kB
"""


@pytest.fixture
def read(tmp_path):
    path = tmp_path / "smaps"
    path.write_text(TEXT, encoding="utf-8")
    return smaps.mappings(str(path))


def test_mappings(read):
    assert len(read) == 7
    assert read[0] == smaps.Mapping(0x55d0c0000000, 0x55d0c0002000, "r--p", "/usr/lib/a file.so",
                                    {"Size": 8192, "Rss": 8192, "Anonymous": 0})
    assert read[1].figures["AnonHugePages"] == 2 << 20
    assert [m.is_anonymous for m in read] == [False, True, False, True, True, False, True]
    assert smaps.total("Rss", read) == 2648 * 1024
    assert smaps.total("Nothing", read) == 0


def test_gaps(read):
    assert smaps.huge_gaps(read, 2 << 20) == smaps.Gaps(1, 0x80000)
    assert smaps.huge_gaps(read, 0x80000) == smaps.Gaps(0, 0)


def test_no_smaps(tmp_path):
    assert smaps.mappings(str(tmp_path / "none")) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads smaps")
def test_this_process():
    found = smaps.mappings()
    assert any(m.name == "[stack]" for m in found)
    assert all(m.start < m.end and "Rss" in m.figures for m in found if m.name != "[vsyscall]")


def test_huge_page_size(tmp_path):
    path = tmp_path / "hpage_pmd_size"
    assert smaps.huge_page_size(str(path)) == 0
    path.write_text("2097152\n")
    assert smaps.huge_page_size(str(path)) == 2 << 20


def test_zero_pages_in_huge_pages(tmp_path, monkeypatch):
    """Of three ranges of four pages: one half written, one not present as a whole, one full."""
    page, huge = 4096, 4 * 4096
    memory = bytearray(5 * huge)
    memory[huge:huge + page + 1] = b"x" * (page + 1)
    memory[3 * huge:4 * huge] = b"x" * huge
    entries = [smaps.PRESENT] * 20
    entries[9] = 0
    (tmp_path / "mem").write_bytes(memory)
    (tmp_path / "pagemap").write_bytes(b"".join(e.to_bytes(8, sys.byteorder) for e in entries))
    monkeypatch.setattr(smaps, "MEMORY", os.fspath(tmp_path / "mem"))
    monkeypatch.setattr(smaps, "PAGEMAP", os.fspath(tmp_path / "pagemap"))

    def mapping(huge_bytes):
        return smaps.Mapping(huge - page, 4 * huge + page, "rw-p", "",
                             {"AnonHugePages": huge_bytes})

    assert smaps.zero_in_huge_pages([mapping(2 * huge)], huge, page) == 2 * page
    assert smaps.zero_in_huge_pages([mapping(page)], huge, page) == page
    assert smaps.zero_in_huge_pages([mapping(0)], huge, page) == 0
