"""The mappings of this process as /proc/self/smaps has them, and what huge pages do in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SMAPS = "/proc/self/smaps"
PAGEMAP = "/proc/self/pagemap"
MEMORY = "/proc/self/mem"
HUGE_PAGE_SIZE = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"
# Of the system's page map: the page is in memory.
PRESENT = 1 << 63


@dataclass(frozen=True)
class Mapping:
    """One mapping. `figures` are bytes by smaps' names (Rss, Anonymous, AnonHugePages, ..)."""

    start: int
    end: int
    access: str
    name: str
    figures: dict[str, int]

    @property
    def is_anonymous(self) -> bool:
        """Whether it is private memory without a file, that the process may write."""
        return self.access.startswith("rw") and self.access.endswith("p") and (
            not self.name or self.name.startswith("["))


@dataclass(frozen=True)
class Gaps:
    """Address space between neighbouring anonymous mappings, where it is less than a huge page.

    No huge page can cover it, nor what lies beside it in the same 2 MiB.
    """

    count: int
    nbytes: int


def mappings(path: str = SMAPS) -> list[Mapping]:
    """All mappings in the order of their addresses; none where the system has no smaps."""
    found: list[Mapping] = []
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                words = line.split(None, 5)
                if words[0].endswith(":"):
                    if len(words) == 3 and words[2] == "kB":
                        found[-1].figures[words[0][:-1]] = int(words[1]) * 1024
                    continue
                start, end = (int(x, 16) for x in words[0].split("-"))
                name = words[5].rstrip("\n") if len(words) > 5 else ""
                found.append(Mapping(start, end, words[1], name, {}))
    except OSError:  # not Linux
        pass
    return found


def total(figure: str, of: Iterable[Mapping]) -> int:
    """Sum of a figure in bytes."""
    return sum(m.figures.get(figure, 0) for m in of)


def huge_page_size(path: str = HUGE_PAGE_SIZE) -> int:
    """Bytes of a huge page; 0 where the system has none."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def huge_gaps(of: Iterable[Mapping], huge: int) -> Gaps:
    """Gaps between neighbours; see `Gaps`. `huge` is the size of a huge page in bytes."""
    count = nbytes = 0
    last = None
    for mapping in of:
        if not mapping.is_anonymous:
            continue
        if last is not None and 0 < mapping.start - last < huge:
            count += 1
            nbytes += mapping.start - last
        last = mapping.end
    return Gaps(count, nbytes)


def zero_in_huge_pages(of: Iterable[Mapping], huge: int, page: int = 4096) -> int:
    """Bytes of pages that are zero throughout, in ranges that may be huge pages.

    What a huge page holds and nobody ever wrote is zero: this is the most that rounding to huge
    pages can cost. (Zeros that were written count as well.)
    """
    zero = bytes(page)
    found = 0
    wanted = [m for m in of if m.figures.get("AnonHugePages")]
    if not wanted:
        return 0
    try:
        with open(PAGEMAP, "rb") as pages, open(MEMORY, "rb", buffering=0) as memory:
            for mapping in wanted:
                inside = 0
                for start in range(-(-mapping.start // huge) * huge, mapping.end - huge + 1, huge):
                    pages.seek(start // page * 8)
                    entries = memoryview(pages.read(huge // page * 8)).cast("Q")
                    if not all(entry & PRESENT for entry in entries):
                        continue  # a huge page is present as a whole
                    memory.seek(start)
                    data = memory.read(huge)
                    inside += sum(page for at in range(0, huge, page)
                                  if data[at:at + page] == zero)
                found += min(inside, mapping.figures["AnonHugePages"])
    except OSError:  # a system that shows neither
        pass
    return found
