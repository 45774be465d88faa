# cython: language_level=3
"""Host memory that vkrt allocates itself: staging, pools, memory that devices import.

Blocks lie back to back in regions (`vkrt.memory.host_region`), so that a page belongs to
neighbours and not to rounding, and several odd-sized ones fill a huge page together. Huge pages
are asked for only where blocks use every small page of the range: such a huge page holds nothing
that small pages would not.

Closing a block gives its pages back at once. The GIL orders everything here; it is released only
while pages of a block that is still taken are dropped.
"""

import errno as codes
import os

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uintptr_t

from vkrt.memory.host_region cimport (
    PAGE, Region, down, drop_pages, lend_pages, live_regions, refused, reserve, up,
)
from vkrt.memory.smaps import huge_pages, mappings, total
from vkrt.vk.memory import trim as trim_heap

POLICIES = ("auto", "off", "aligned", "on")
# What "auto" is: see tools/bench_hugepages.py.
BEST = "on"

# Blocks begin and end on multiples of it: a cache line, and the strictest offset of a storage
# buffer that CPU drivers which read host memory in place are known to keep.
cdef size_t GRANULE = 64
# Address space of a region costs nothing; few regions have few ends that no huge page covers.
cdef size_t REGION = 64 << 20
# For placing blocks on systems without huge pages.
cdef size_t USUAL_HUGE = 2 << 20
# From this many huge pages on a block begins with one: less than an eighth is lost in front of it.
cdef size_t MANY = 8
cdef size_t MOST_ALIGNMENT = 1 << 30
cdef size_t MOST_BYTES = 1 << 62

cdef long live_blocks = 0


def live_host_memory():
    """How many regions and blocks of all arenas there are in this process, as a dict of ints."""
    return {"regions": live_regions, "blocks": live_blocks}


@cython.no_gc_clear
cdef class HostArena:
    """Blocks of host memory, packed.

    Args:
        policy: "off": no alignment beyond what is asked, no huge pages asked for. "aligned":
            every block begins on a multiple of the huge page's size (for comparison: it leaves a
            gap behind each odd-sized one). "on": only blocks of whole huge pages, or as large as
            many of them, do; huge pages are asked for where blocks fill them. "auto": what
            measured best, which is "on".
        shared: the memory is a file in memory (memfd), whose descriptor blocks show: for memory
            that several processes map. Linux only.

    Attributes:
        policy: never "auto".
        huge_bytes: of a huge page; where the system has none, 2 MiB.

    A range that was written before blocks filled it keeps its small pages: to have huge ones,
    allocate everything that lies together first and write it then.

    Where the system's setting is "always" or "never", or where it is not Linux, nothing is asked
    for; blocks are placed in the same way.

    Raises:
        ValueError: no such policy.
        OSError: shared memory, and the system has no memfd_create.
    """

    def __init__(self, str policy="auto", bint shared=False):
        if policy not in POLICIES:
            raise ValueError(f"policy '{policy}': expected one of {', '.join(POLICIES)}")
        if shared and not hasattr(os, "memfd_create"):
            raise OSError(codes.ENOSYS, "shared host memory needs memfd_create, which this "
                                        "system lacks; use shared=False")
        self.policy = BEST if policy == "auto" else policy
        self.shared = shared
        self.regions = []
        self.idle_blocks = {}
        setting, nbytes = huge_pages(shared)
        self.huge_bytes = nbytes or USUAL_HUGE
        self.advise = setting == "madvise" and self.policy != "off"
        self.has_huge = self.advise or setting == "always"

    cpdef HostBlock allocate(self, size_t nbytes, size_t alignment=GRANULE):
        """A block of exactly `nbytes`.

        Its contents are undefined: a page shared with a former block keeps that one's bytes.

        Args:
            nbytes: at least one.
            alignment: of its address, a power of two up to 1 GiB. Memory to be imported by a
                device needs that of the device (usually a page) and a size of whole pages.

        Raises:
            ValueError: an argument is out of range, or the arena is closed.
            MemoryError: the system refuses; nothing is left behind.
        """
        cdef Region region, candidate
        cdef Py_ssize_t i, index
        cdef size_t at, start
        cdef size_t hole, smallest, bytes_needed
        if self.closed:
            raise ValueError("the arena is closed")
        if nbytes == 0:
            raise ValueError("a block needs at least one byte")
        if alignment == 0 or alignment & (alignment - 1) or alignment > MOST_ALIGNMENT:
            raise ValueError(f"alignment {alignment}: expected a power of two from 1 to "
                             f"{MOST_ALIGNMENT:,}")
        if nbytes > MOST_BYTES:
            raise MemoryError(f"no host memory for {nbytes:,} bytes: more than there are addresses")
        alignment = max(alignment, GRANULE)
        if self.policy == "aligned" or self.policy == "on" and (
                nbytes % self.huge_bytes == 0 or nbytes >= MANY * self.huge_bytes):
            alignment = max(alignment, self.huge_bytes)
        bytes_needed = up(nbytes, GRANULE)
        region, index, at, smallest = None, -1, 0, 0
        for candidate in self.regions:
            i = candidate.best_hole(bytes_needed, alignment, &start, &hole)
            if i >= 0 and (index < 0 or hole < smallest):
                region, index, at, smallest = candidate, i, start, hole
        if index < 0:
            region = self._grow(bytes_needed, alignment, nbytes)
            index, at = 0, 0
        return self.place(region, index, at, nbytes)

    def _grow(self, size_t needed, size_t alignment, size_t asked):
        cdef size_t least = up(needed, self.huge_bytes)
        cdef size_t usual = max(least, up(REGION, self.huge_bytes))
        cdef Region region
        alignment = max(alignment, self.huge_bytes)
        try:
            region = reserve(usual, alignment, self.shared, asked)
        except MemoryError:  # a limit on addresses may still leave room for the block alone
            if usual == least:
                raise
            region = reserve(least, alignment, self.shared, asked)
        self.regions.append(region)
        return region

    cdef HostBlock place(self, Region region, Py_ssize_t index, size_t start, size_t nbytes):
        global live_blocks
        cdef HostBlock block = HostBlock.__new__(HostBlock)
        cdef size_t end = start + up(nbytes, GRANULE)
        cdef size_t first = down(start, PAGE)
        region.take(index, start, end)
        if not region.open_pages(first, up(end, PAGE)):
            error = refused(nbytes, "make them accessible")
            self.release(region, start, nbytes)
            raise error
        region.used += nbytes
        live_blocks += 1
        block.arena = self
        block.region = region
        block.data = region.base + start
        block.nbytes = nbytes
        block.offset = start
        if self.advise:
            self.advise_full(region, start, end)
        return block

    cdef int advise_full(self, Region region, size_t start, size_t end) except -1:
        """Asks for huge pages where the block at [start, end) and its neighbours fill them.

        All huge pages between its first and last one are its own, so only those two are looked at.
        """
        cdef size_t first = down(start, self.huge_bytes)
        cdef size_t last = up(end, self.huge_bytes)
        if not region.is_full(first, first + self.huge_bytes):
            first += self.huge_bytes
        if last > first and not region.is_full(last - self.huge_bytes, last):
            last -= self.huge_bytes
        if last > first:
            region.ask_for_huge(first, last)
        return 0

    cdef void drop(self, char* start, size_t nbytes) noexcept nogil:
        """Takes the memory out of whole pages.

        Huge pages are not split once the arena is closed: the rest of them follows at once.
        """
        drop_pages(start, nbytes, self.shared,
                   self.huge_bytes if self.has_huge and not self.closed else 0)

    cdef int release(self, Region region, size_t start, size_t nbytes) except -1:
        cdef size_t end = start + up(nbytes, GRANULE)
        cdef size_t inner = up(start, PAGE)
        cdef size_t outer = max(inner, down(end, PAGE))
        cdef size_t first, last
        with nogil:  # nobody else's, and still taken: the long part
            if outer > inner:
                self.drop(region.base + inner, outer - inner)
        region.put(start, end, &first, &last)
        if region.blocks == 0:
            self.regions.remove(region)
            region.unmap()
            return 0
        # The pages at its ends, where neighbours have gone before
        if first < min(inner, last):
            self.drop(region.base + first, min(inner, last) - first)
        if max(outer, first) < last:
            self.drop(region.base + max(outer, first), last - max(outer, first))
        if last > first:
            region.shut_pages(first, last)
        return 0

    def trim(self):
        """Takes the memory of idle blocks, and gives free pages of the C heap back.

        Memory of closed blocks is not kept to begin with.
        """
        cdef size_t address, first, last
        for address, nbytes in self.idle_blocks.items():
            first, last = up(address, PAGE), down(address + nbytes, PAGE)
            if last > first:
                self.drop(<char*>first, last - first)
        trim_heap()

    def statistics(self):
        """Bytes of now, as a dict of ints.

        `regions`, `blocks`: how many. `mapped`: address space. `used`: of the blocks as asked.
        `pages`: of the small pages that blocks touch. `rounding`: `pages` less `used`. `gaps`:
        address space that no block uses and a block follows. `idle`: of idle blocks.
        From smaps (0 where the system has none): `resident`, `huge`: of it in huge pages,
        `lazy`: of it the system's to take, `huge_rounding`: of it beyond `pages` (at least: pages
        that were never touched hide as much).
        """
        cdef Region region
        result = dict.fromkeys(("regions", "blocks", "mapped", "used", "pages", "rounding", "gaps",
                                "idle", "resident", "huge", "lazy", "huge_rounding"), 0)
        ranges = []
        for region in self.regions:
            result["regions"] += 1
            result["blocks"] += region.blocks
            result["mapped"] += region.nbytes
            result["used"] += region.used
            result["pages"] += region.pages
            result["gaps"] += region.gaps
            ranges.append((<uintptr_t>region.base, <uintptr_t>region.base + region.nbytes))
        result["rounding"] = result["pages"] - result["used"]
        result["idle"] = sum(self.idle_blocks.values())
        inside = [m for m in (mappings() if ranges else ())
                  if any(m.start < end and m.end > start for start, end in ranges)]
        result["resident"] = total("Rss", inside)
        result["huge"] = total("AnonHugePages", inside) + total("ShmemPmdMapped", inside)
        result["lazy"] = total("LazyFree", inside)
        result["huge_rounding"] = max(0, result["resident"] - result["pages"])
        return result

    def close(self):
        """Ends the arena: no new blocks. Those there are stay usable until they are closed.

        To give everything back fast, close the arena first and its blocks after it.
        """
        self.closed = True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


@cython.no_gc_clear
cdef class HostBlock:
    """Host memory with the buffer protocol: `memoryview(block)` copies nothing.

    Made by `HostArena.allocate`. `close()` may be called while views exist: the memory then goes
    with the last of them. A device that imported it must be done with it.

    Attributes:
        nbytes: as asked.
        offset: of its first byte in the region, and so in the file `fd`.
    """

    def __init__(self):
        raise TypeError("use HostArena.allocate()")

    @property
    def address(self):
        """Of its first byte."""
        self._check_open()
        return <uintptr_t>self.data

    @property
    def fd(self):
        """Descriptor of the file in memory that has it at `offset`; -1 without `shared=True`.

        It is the region's and closed with it; duplicate it to keep it.
        """
        self._check_open()
        return self.region.fd

    def idle(self):
        """Says that nobody needs the contents until the next `wake()`; the address stays.

        The pages are the system's to take (MADV_FREE), which costs neither a fault nor zeros when
        they are written again before it needed them, and are taken by `trim()`. Until then they
        count as resident. Shared memory knows no such state, its pages go at once.
        """
        cdef size_t first, last
        self._check_open()
        first = up(<uintptr_t>self.data, PAGE)
        last = down(<uintptr_t>self.data + self.nbytes, PAGE)
        self.arena.idle_blocks[<uintptr_t>self.data] = self.nbytes
        if last > first and (self.arena.shared
                             or not lend_pages(<char*>first, last - first)):
            self.arena.drop(<char*>first, last - first)

    def wake(self):
        """Before writing to an idle block: `trim()` leaves it alone again."""
        self._check_open()
        self.arena.idle_blocks.pop(<uintptr_t>self.data, None)

    def _check_open(self):
        if self.closed:
            raise ValueError(f"the block of {self.nbytes:,} bytes is closed")

    def __getbuffer__(self, Py_buffer* view, int flags):
        self._check_open()
        PyBuffer_FillInfo(view, self, self.data, self.nbytes, 0, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.closed and self.exports == 0:
            self.destroy()

    cdef void destroy(self) noexcept:
        global live_blocks
        if self.data == NULL:
            return
        self.arena.idle_blocks.pop(<uintptr_t>self.data, None)
        self.data = NULL
        self.region.used -= self.nbytes
        live_blocks -= 1
        self.arena.release(self.region, self.offset, self.nbytes)

    def close(self):
        """Gives the memory back as soon as no view of it is left."""
        if not self.closed:
            self.closed = True
            if self.exports == 0:
                self.destroy()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        self.destroy()
