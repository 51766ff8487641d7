"""The guarantee lab: every story of loss and duplication, played and counted; writes docs/guarantees.md.

python -m tests.guarantees [--stories acks-1,power] [--no-page]      Exit code 1 where a story did not go as promised.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.chaos.cluster import Cluster
from tests.guarantees import acks, chains, elections, groups, lost_answers, power, readers, split_brain
from tests.guarantees.lab import Lab
from tests.guarantees.story import Counts, Story, judge
from tests.guarantees.table import PAGE, Line, page, text_table

STORIES: tuple[Story, ...] = (
    *acks.STORIES,
    *lost_answers.STORIES,
    *elections.STORIES,
    *split_brain.STORIES,
    *power.STORIES,
    *readers.STORIES,
    *groups.STORIES,
    *chains.STORIES,
)
SETTINGS = {
    "replica.lag.time.max.ms": "3000",
    "auto.create.topics.enable": "false",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def play_all(stories: tuple[Story, ...], folder: Path) -> list[Line]:
    lines = []
    for story in stories:
        started = time.monotonic()
        line = play(story, folder / story.key)
        lines.append(line)
        shown = line.problem.splitlines()[-1] if line.problem else story.expected.value
        took = f"({time.monotonic() - started:.0f} s)"
        print(f"{time.strftime('%H:%M:%S')} {story.key}: {shown} {took} {line.counts}", flush=True)
    return lines


def play(story: Story, folder: Path) -> Line:
    try:
        counts = story.simulate() if story.simulate else play_on_brokers(story, folder)
    except Exception:
        return Line(story, None, traceback.format_exc())
    return Line(story, counts, judge(story, counts))


def play_on_brokers(story: Story, folder: Path) -> Counts:
    """A cluster of its own for each: no story begins with what another left behind."""
    with Cluster(folder, 3, SETTINGS, has_links=True, has_client_links=True) as cluster:
        assert story.play is not None
        return story.play(Lab(cluster))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", default="", help="only these, by the beginning of their names")
    parser.add_argument("--no-page", action="store_true", help="leave docs/guarantees.md as it is")
    parser.add_argument("--folder", type=Path, help="where data is kept (default: a temporary one)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers go too
    wanted = tuple(filter(None, arguments.stories.split(",")))
    stories = tuple(story for story in STORIES if not wanted or story.key.startswith(wanted))
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="highwater-guarantees-"))
    lines = play_all(stories, folder)
    print(text_table(lines))
    problems = [f"{line.story.key}: {line.problem}" for line in lines if line.problem]
    print("\n".join(problems))
    if not wanted and not problems and not arguments.no_page:
        PAGE.write_text(page(lines))
        print(f"-- written: {PAGE}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
