"""`python -m broker_engine.simulator`: one seed told in full, or many seeds in a row.

--seed N [--trace]             one run; with --trace everything that was logged
--seeds N [--first M] [--jobs J] many, with a closing line; exit code 1 if a rule was broken
--planted [NAME]              does it find the bugs that we know of? A table; exit code 1 if one is not found
--seeds N --hashes             what each of them did, in a number: the same each time
--chaos-s-min N                with all of these but --planted: faults go on for N seconds at least
"""

from __future__ import annotations

import argparse
import os
import sys

from broker_engine.simulator.campaign import run_many, tell, tell_violation
from broker_engine.simulator.planted_table import tell_planted
from broker_engine.simulator.run import run_seed
from broker_engine.simulator.schedule import draw_faults
from broker_engine.simulator.swarm import draw


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        return _run_one(options.seed, is_traced=options.trace, chaos_s_min=options.chaos_s_min)
    if options.planted is not None:
        return tell_planted(options.planted)
    if options.hashes:
        return _tell_hashes(seeds, options.chaos_s_min)
    return run_many(seeds, job_count=options.jobs, chaos_s_min=options.chaos_s_min)


def _run_one(seed: int, *, is_traced: bool, chaos_s_min: float) -> int:
    swarm = draw(seed, chaos_s_min=chaos_s_min)
    tell(f"seed {seed}: {swarm}")
    for fault in draw_faults(swarm):
        tell(f"  {fault}")
    report = run_seed(seed, chaos_s_min=chaos_s_min, is_traced=is_traced)
    if is_traced:
        for line in report.lines:
            tell(line)
    if not report.is_ok:
        tell_violation(report, is_shrunk=not is_traced, chaos_s_min=chaos_s_min)
    tell(
        f"seed {seed}: trace hash {report.trace_hash:016x}, {report.event_count} events, "
        f"{report.virtual_s:.1f} s of virtual time, {report.acked_count} acked, violations {len(report.violations)}"
    )
    return 0 if report.is_ok else 1


def _tell_hashes(seeds: range, chaos_s_min: float) -> int:
    for seed in seeds:
        tell(f"{seed} {run_seed(seed, chaos_s_min=chaos_s_min).trace_hash:016x}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m broker_engine.simulator", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one")
    parser.add_argument("--trace", action="store_true", help="tell everything that was logged")
    parser.add_argument("--seeds", type=int, default=100, help="run so many")
    parser.add_argument(
        "--first", "--from", type=int, default=0, help="the first of them: to go on where a run was ended"
    )
    parser.add_argument("--planted", nargs="?", const="", metavar="NAME", help="find planted bugs, all or one")
    parser.add_argument("--hashes", action="store_true", help="tell only the trace hash of each")
    parser.add_argument(
        "--chaos-s-min", type=float, default=0.0, metavar="N", help="virtual seconds of faults in each, at least"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:
        # The order of sets of strings must not matter; should it ever, it is at least the same each time.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "broker_engine.simulator", *sys.argv[1:]])  # noqa: S606
    sys.exit(main())
