"""Process chaos: real brokers under load, killed, stopped, cut off, filled up, wiped; the history goes to the checker.

python -m tests.chaos [--brokers 3] [--faults kill=10,cut=3] [--seconds 600] [--seed N] [--long] [--failover N]
python -m tests.chaos --long --tally chaos.json --seconds 540       # again and again, until nothing is left to play
Exit code 1 where a promise was broken; the closing lines then say how to repeat, and where logs and histories are.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import failover
from tests.chaos.programme import LONG, ROUNDS_PER_ACT, SHORT, Outcome, Programme

VIOLATIONS_SHOWN = 20


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--faults", help="rounds of each, for example kill=10,cut=3 (default: a short mix)")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no round after this time (see --tally)"
    )
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="draws order, victims and times")
    parser.add_argument("--long", action="store_true", help="the full programme: some 40 minutes")
    parser.add_argument("--failover", type=int, default=0, metavar="N", help="then N kills of each sort of leader")
    parser.add_argument("--rounds-per-act", type=int, default=ROUNDS_PER_ACT, help="rounds between two checks")
    parser.add_argument("--tally", type=Path, help="a file with what was played so far: a later run plays what is left")
    parser.add_argument("--clients", default="groups,transactions", help="beside the plain ones")
    parser.add_argument("--folder", type=Path, help="where data is kept (default: a temporary one)")
    return parser.parse_args()


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def parse_counts(arguments: argparse.Namespace) -> dict[str, int]:
    if arguments.faults is None:
        return dict(LONG if arguments.long else SHORT)
    pairs = (part.split("=") for part in filter(None, arguments.faults.split(",")))
    return {name: int(count) for name, count in pairs}


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers go too
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="highwater-chaos-"))
    counts = parse_counts(arguments)
    say(f"-- chaos on {arguments.brokers} brokers, seed {arguments.seed}, in {folder}")
    outcome = Programme(
        folder, arguments.seed, say, arguments.brokers, counts, arguments.seconds, arguments.rounds_per_act,
        arguments.tally, "groups" in arguments.clients, "transactions" in arguments.clients,
    ).play()  # fmt: skip
    left = outcome.left_of(counts)
    is_timed = arguments.failover and not left and not outcome.violations
    tables = failover.run(folder / "failover", arguments.failover, say) if is_timed else []
    for line in (*tables, *outcome.closing_lines()):
        say(line)
    if left:
        say(f"-- left to play: {', '.join(f'{name} {count}' for name, count in left.items())}")
    if outcome.violations:
        tell_violations(outcome, arguments, folder)
        return 1
    if arguments.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def tell_violations(outcome: Outcome, arguments: argparse.Namespace, folder: Path) -> None:
    for text in outcome.violations[:VIOLATIONS_SHOWN]:
        say(f"VIOLATION {text}")
    if len(outcome.violations) > VIOLATIONS_SHOWN:
        say(f"... and {len(outcome.violations) - VIOLATIONS_SHOWN} more")
    faults = ",".join(f"{name}={count}" for name, count in parse_counts(arguments).items())
    say(f"-- the same faults again: python -m tests.chaos --seed {outcome.seed} --brokers {arguments.brokers} "
        f"--faults {faults} --rounds-per-act {arguments.rounds_per_act} --clients {arguments.clients}")  # fmt: skip
    say(f"-- histories (*.jsonl), logs and data of this run are kept in {folder}")


if __name__ == "__main__":
    sys.exit(main())
