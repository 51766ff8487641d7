"""What the simulated disk keeps, loses and refuses."""

from __future__ import annotations

import errno
from random import Random

import pytest

from broker_engine.simulator.disk_faults import DiskCall
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.survival import KeepAll, KeepNames, KeepRandom, KeepSynced


def disk_with_a_synced_file(content: bytes = b"safe") -> SimDisk:
    disk = SimDisk()
    disk.make_dirs("d")
    disk.sync_dir("")
    handle = disk.open("d/f", create=True)
    handle.append([content])
    handle.sync()
    disk.sync_dir("d")
    return disk


def contents_after(disk: SimDisk, path: str, seeds: int, *, is_reordering: bool = False) -> set[bytes | None]:
    found: set[bytes | None] = set()
    for seed in range(seeds):
        image = disk.image(KeepRandom(Random(seed), is_reordering_names=is_reordering))
        found.add(image.read_small(path) if image.exists(path) else None)
    return found


def test_a_killed_process_leaves_what_it_wrote_and_no_open_files() -> None:
    disk = disk_with_a_synced_file()
    handle = disk.open("d/f")
    handle.append([b", not synced"])
    disk.kill()
    assert disk.read_small("d/f") == b"safe, not synced"
    with pytest.raises(OSError, match="dead"):
        handle.append([b"!"])


def test_power_failure_keeps_a_prefix_torn_at_any_byte_or_zeros() -> None:
    disk = disk_with_a_synced_file()
    handle = disk.open("d/f")
    handle.append([b"ab", b"c"])
    handle.append([b"de"])
    found = contents_after(disk, "d/f", 400)
    prefixes = {b"safe" + b"abcde"[:count] for count in range(6)}
    assert prefixes <= found
    zeros = found - prefixes
    assert zeros
    assert all(content is not None and content.startswith(b"safe") and len(content) <= 9 for content in zeros)


def test_the_least_and_the_most_that_survive() -> None:
    disk = disk_with_a_synced_file()
    disk.open("d/f").append([b"more"])
    disk.open("d/new", create=True).append([b"data"])
    assert disk.image(KeepSynced()).list_dir("d") == ["f"]
    assert disk.image(KeepSynced()).read_small("d/f") == b"safe"
    assert disk.image(KeepAll()).read_small("d/f") == b"safemore"
    assert disk.image(KeepNames()).read_small("d/new") == b""


def test_a_name_is_safe_only_after_its_directory_was_synced() -> None:
    disk = SimDisk()
    disk.make_dirs("a/b")
    handle = disk.open("a/b/f", create=True)
    handle.append([b"x"])
    handle.sync()
    disk.sync_dir("a/b")
    disk.sync_dir("a")
    assert not disk.image(KeepSynced()).exists("a"), "the root was never synced"
    disk.sync_dir("")
    assert disk.image(KeepSynced()).read_small("a/b/f") == b"x"


def test_a_rename_is_undone_whole_or_not_at_all() -> None:
    disk = disk_with_a_synced_file()
    disk.rename("d/f", "d/g")
    listings = {tuple(disk.image(KeepRandom(Random(seed))).list_dir("d")) for seed in range(40)}
    assert listings == {("f",), ("g",)}
    disk.sync_dir("d")
    assert disk.image(KeepSynced()).list_dir("d") == ["g"]


def test_names_of_one_directory_survive_in_order_unless_the_file_system_reorders() -> None:
    disk = disk_with_a_synced_file()
    for name in "abc":
        disk.open(f"d/{name}", create=True)

    def listings(*, is_reordering: bool) -> set[str]:
        policies = (KeepRandom(Random(seed), is_reordering_names=is_reordering) for seed in range(100))
        return {"".join(disk.image(policy).list_dir("d")) for policy in policies}

    assert listings(is_reordering=False) == {"f", "af", "abf", "abcf"}
    assert "bf" in listings(is_reordering=True)


def test_a_directory_moves_with_all_that_is_in_it() -> None:
    disk = disk_with_a_synced_file()
    disk.make_dirs("other")
    disk.sync_dir("")
    disk.rename("d", "other/d")
    found = {(image.exists("d/f"), image.exists("other/d/f")) for image in map(disk.image, random_policies(60))}
    assert found == {(True, False), (False, True)}


def random_policies(count: int) -> list[KeepRandom]:
    return [KeepRandom(Random(seed)) for seed in range(count)]


def test_an_atomic_durable_write_is_old_or_new_at_every_step() -> None:
    disk = disk_with_a_synced_file(b"old")
    disk.write_atomic("d/f", b"new", is_durable=True)
    assert disk.image(KeepSynced()).read_small("d/f") == b"new"
    disk.write_atomic("d/f", b"newer", is_durable=False)
    assert {b"new", b"newer", b""} <= contents_after(disk, "d/f", 300)


def test_a_failed_sync_loses_its_bytes_and_the_next_one_lies() -> None:
    disk = disk_with_a_synced_file()
    handle = disk.open("d/f")
    handle.append([b"lost"])
    disk.faults.fail_next(DiskCall.SYNC)
    with pytest.raises(OSError, match="on command"):
        handle.sync()
    handle.append([b"kept"])
    handle.sync()
    assert disk.read_small("d/f") == b"safelostkept", "the page cache does not know"
    assert disk.image(KeepSynced()).read_small("d/f") == b"safe" + bytes(4) + b"kept"


def test_a_full_disk_writes_what_fits_and_then_nothing() -> None:
    disk = disk_with_a_synced_file()
    disk.faults.capacity_bytes = 6
    handle = disk.open("d/f")
    assert handle.append([b"abc"]) == 2
    with pytest.raises(OSError, match="No space") as raised:
        handle.append([b"c"])
    assert raised.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        disk.write_atomic("d/g", b"x", is_durable=True)
    assert disk.list_dir("d") == ["f"], "nothing of the failed write stays"
    handle.truncate(0)
    assert handle.append([b"abc"]) == 3, "space that was freed can be used"


def test_errors_short_writes_and_stalls_come_when_they_were_asked_for() -> None:
    disk = disk_with_a_synced_file()
    handle = disk.open("d/f")
    disk.faults.fail_next(DiskCall.READ, after_count=1)
    disk.faults.stall_next(DiskCall.SYNC, 5_000)
    disk.faults.shorten_next_write(2)
    assert handle.pread(4, 0) == b"safe"
    with pytest.raises(OSError, match="Input/output"):
        handle.pread(4, 0)
    assert handle.pread(4, 0) == b"safe"
    assert handle.append([b"abc"]) == 2
    handle.sync()
    assert [(stall.call, stall.delay_ms) for stall in disk.faults.stalls] == [(DiskCall.SYNC, 5_000)]
    disk.faults.error_ratios[DiskCall.RENAME] = 1.0
    with pytest.raises(OSError, match="on command"):
        disk.rename("d/f", "d/g")


def test_a_flipped_bit_is_there_for_readers_and_after_a_crash() -> None:
    disk = disk_with_a_synced_file(b"\0\0\0")
    disk.flip_bit("d/f", 1, bit=3)
    assert disk.read_small("d/f") == disk.image(KeepSynced()).read_small("d/f") == b"\0\x08\0"
    assert 0 <= disk.flip_bit("d/f") < 3


def test_a_misdirected_read_answers_other_bytes() -> None:
    disk = disk_with_a_synced_file(bytes(range(200)))
    handle = disk.open("d/f")
    disk.faults.misdirect_next_read()
    assert handle.pread(4, 0) != handle.pread(4, 0)


def test_the_same_seed_breaks_the_same_things() -> None:
    def story(seed: int) -> tuple[list[str], bytes]:
        disk = SimDisk(seed)
        disk.make_dirs("d")
        for number in range(20):
            disk.open(f"d/{number}", create=True).append([b"%d" % number * 50])
            if number % 3 == 0:
                disk.sync_dir("d")
        disk.sync_dir("")
        disk.lose_power()
        names = disk.list_dir("d")
        return names, b"|".join(disk.read_small(f"d/{name}") for name in names)

    assert story(7) == story(7)
    assert len({story(seed)[1] for seed in range(5)}) > 1


def test_a_killed_copy_still_has_everything_to_lose() -> None:
    disk = disk_with_a_synced_file()
    disk.open("d/f").append([b", not synced"])
    disk.rename("d/f", "d/g")
    copy = disk.killed()
    assert copy.read_small("d/g") == b"safe, not synced"
    copy.unlink("d/g")
    copy.sync_dir("d")
    assert copy.image(KeepSynced()).list_dir("d") == []
    assert disk.image(KeepSynced()).read_small("d/f") == b"safe", "the first disk is as it was"
    again = disk.killed()
    again.open("d/g").sync()
    assert again.image(KeepSynced()).read_small("d/f") == b"safe, not synced"
