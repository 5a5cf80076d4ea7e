#!/usr/bin/env python3
"""Goal    a run is what was asked for, or it failed by name: each setting that differs among the runs of a comparison is read back from
        the run's own report, and a run that is not finished is not good.
Method  programs that train nothing and leave the report that the flags ask for, or another one (fake_programs.py).
usage: test_compare_settings.py PATH/TO/downpour"""
import json, os, sys
from fake_bed import Bed

MODES = "async,ssp:04,sync@3,sync:1,async:leased,hogwild@4,allreduce"
# consistency, work, workers, threads, whether ranks add
ASKED = {"async": ("async", "fixed", 2, 1, False), "ssp:04": ("ssp:04", "fixed", 2, 1, False),
         "sync@3": ("sync", "fixed", 3, 1, False), "sync:1": ("sync:1", "fixed", 2, 1, False),
         "async:leased": ("async", "leased", 2, 1, False), "hogwild@4": ("async", "fixed", 1, 4, False),
         "allreduce": ("sync", "fixed", 2, 1, True)}
FLAGS = ["--lr-grid", "none", "--modes", MODES, "--workers", "2", "--inject", "pace=2ms,jitter=exp,straggler=1:3x"]


def path_of(mode):
    return "".join(c if c.isalnum() or c in "._@=+" else "-" for c in mode if c != "]")


def words_of(where, run):
    return json.load(open(f"{where}/{run}/words.json"))


def each_run_is_asked_for_what_the_comparison_notes(bed):
    # A rate as it is given, in a form that no report has; and the run's own writing of the rule.
    but = {f"runs/ssp-04/seed-{s}": {"settings": {"consistency": "ssp:4"}} for s in (5, 6)}
    _, report, _ = bed.compare("asked", FLAGS + ["--seed", "5", "--seeds", "2", "--rate", "25e-4"], but)
    bed.check("the seeds of the runs", sorted((r["mode"], r["seed"]) for r in report["runs"]),
              sorted((m, s) for m in ASKED for s in (5, 6)))
    for run in report["runs"]:
        name = f"{run['mode']}, seed {run['seed']}"
        bed.check(f"{name}: status", (run["status"], run["error"]), ("ok", ""))
        settings = run["report"]["settings"]
        rule, work, workers, threads, ranks = ASKED[run["mode"]]
        bed.check(f"{name}: seed", settings["seed"], run["seed"])
        bed.check(f"{name}: directory", run["dir"], f"runs/{run['mode'].replace(':', '-')}/seed-{run['seed']}")
        bed.check(f"{name}: mode", (settings["consistency"].replace(":04", ":4"), settings["work"], settings["workers"],
                                    settings["threads"], "reduced_by" in run["report"]),
                  (rule.replace(":04", ":4"), work, workers, threads, ranks))
        bed.check(f"{name}: rate", settings["rate"], 0.0025)
        bed.check(f"{name}: delays", (settings["pace"], settings["jitter"], settings.get("straggler")),
                  ("2ms", "exp", None if threads > 1 else "1:3x"))


def none_is_no_difference(bed):
    """As a run reports it: without jitter, and the straggler as it was given."""
    flags = ["--modes", "async,hogwild", "--lr-grid", "none", "--seeds", "1", "--inject", "pace=none,jitter=none,straggler=none"]
    _, report, _ = bed.compare("none", flags, {f"runs/{m}/seed-1": {"settings": {"jitter": None}} for m in ("async", "hogwild")})
    bed.check("runs without delays", [(run["status"], run["error"]) for run in report["runs"]], [("ok", "")] * 2)


# What a report says instead, and the words in which its run fails.
OTHERS = [("async", {"seed": 1}, "seed 2, but its report says 1"),
          ("async", {"seed": None}, "seed 2, but its report says null"),
          ("ssp:04", {"consistency": "ssp:3"}, "consistency ssp:4, but its report says ssp:3"),
          ("sync:1", {"consistency": "sync"}, "consistency sync:1, but its report says sync"),
          ("async:leased", {"work": "fixed"}, "work leased, but its report says fixed"),
          ("async", {"work": "leased"}, "work fixed, but its report says leased"),
          ("sync@3", {"workers": 2}, "workers 3, but its report says 2"),
          ("hogwild@4", {"threads": 1}, "threads 4, but its report says 1"),
          ("async", {"threads": 2}, "threads 1, but its report says 2"),
          ("allreduce", {"workers": 1}, "workers 2, but its report says 1"),
          ("sync@3", {"rate": 0.01}, "rate 0.003, but its report says 0.01"),
          ("sync@3", {"rate": 0.003000001}, "rate 0.003, but its report says 0.003000001"),
          ("async", {"overlap": True}, "overlap false, but its report says true"),
          ("ssp:4+prefetch", {"overlap": False}, "overlap true, but its report says false"),
          ("sync@3[batch=5]", {"batch": 6}, "batch 5, but its report says 6"),
          ("async[rate_by_staleness]", {"rate_by_staleness": False}, "rate_by_staleness true, but its report says false"),
          ("async[rate=0.5]", {"rate": 0.003}, "rate 0.5, but its report says 0.003"),
          ("async", {"pace": "3ms"}, "pace 2ms, but its report says 3ms"),
          ("async", {"pace": ""}, "pace 2ms, but its report says"),
          ("sync:1", {"jitter": "normal"}, "jitter exp, but its report says normal"),
          ("sync@3", {"straggler": "0:3x"}, "straggler 1:3x, but its report says 0:3x"),
          ("hogwild@4", {"straggler": "1:3x"}, "straggler none, but its report says 1:3x")]
ROOTS = [("allreduce", {"reduced_by": None}, "servers applied its gradients"),
         ("sync@3", {"reduced_by": "MPI_Alltoall"}, "ranks added its gradients")]
# What is left of a run that did not end, whatever its exit code.
ENDS = [("async", {"root": {"finished": False, "error": "diverged"}}, "no report of a finished training"),
        ("sync:1", {"root": {"finished": False}, "exit": 2}, "training has diverged in epoch 2"),
        ("sync:1", {"exit": 2}, "training has diverged in epoch 2"),
        ("ssp:04", {"report": False}, "no report of a finished training"),
        ("allreduce", {"root": {"finished": False}}, "no report of a finished training"),
        ("hogwild@4", {"root": {"finished": None}}, "no report of a finished training")]


def another_report_is_a_failure_by_name(bed):
    """One of each mode in a comparison, next to a mode that is as asked for."""
    cases = [(m, {"settings": s}, w) for m, s, w in OTHERS] + [(m, {"root": r}, w) for m, r, w in ROOTS] + ENDS
    rounds = 0
    while cases:
        now = dict(list({mode: (but, words) for mode, but, words in reversed(cases)}.items())[:7])
        cases = [case for case in cases if now.get(case[0]) != case[1:]]
        rounds += 1
        but = {f"runs/{path_of(mode)}/seed-2": what for mode, (what, _) in now.items()}
        flags = [",".join(["ssp:2", *now]) if flag == MODES else flag for flag in FLAGS]
        _, report, said = bed.compare(f"other-{rounds}", flags + ["--seed", "2", "--seeds", "1", "--rate", "0.003"], but)
        for run in report["runs"]:
            what, why = now.get(run["mode"], ({}, ""))
            bed.check(f"{run['mode']}, whose report differs in {what}", run["status"], "failed" if what else "ok")
            if why not in run["error"] or f"{run['mode']}, seed 2" not in said or run["error"] not in said:
                bed.fail(f"'{why}' is not why {run['mode']} failed, or not said: {run['error']}: {said}")
        for one in report["statistics"]:
            diverged = "has diverged" in now.get(one["mode"], ("", ""))[1]
            bed.check(f"{one['mode']}: runs, diverged, failed, values",
                      (one["runs"], one["diverged"], one["failed"], one["metric"]["n"]),
                      (0, int(diverged), int(not diverged), 0) if one["mode"] in now else (1, 0, 0, 1))


def the_cause_is_that_of_the_failure(bed):
    """Not the last line that the command says; and a training that diverged is told from one that failed."""
    flags = ["--modes", "async,sync", "--lr-grid", "none", "--seeds", "1"]
    _, report, _ = bed.compare("cause", flags, {"runs/sync/seed-1": {"exit": 2, "report": False}})
    bed.check("the cause", [(r["mode"], r["status"], r["error"], r.get("diverged")) for r in report["runs"]],
              [("async", "ok", "", None), ("sync", "failed", "training has diverged in epoch 2", True)])


def a_mistake_ends_the_comparison_at_its_first_run(bed):
    but = {f"{name}-seed-{seed}" if "grid" in name else f"{name}/seed-{seed}": {"exit": 2, "report": False, "refused": True}
           for name in ("grid/async/0.001", "runs/async") for seed in (1, 1001)}
    for flags in (["--lr-grid", "none"], ["--lr-grid", "0.001"]):
        where, done = bed.try_compare("mistake", ["--modes", "async,sync", "--seeds", "2", *flags], but)
        bed.check("the exit code", done.returncode, 2)
        bed.check("the last line", done.stderr.splitlines()[-1], "downpour: compare: line 13: index 64")
        if "sync, seed" in done.stderr or "async, seed 2" in done.stderr:
            bed.fail(f"other runs were tried: {done.stderr}")
        bed.check("what is left, which the next try would stumble over", os.listdir(where), ["lock"])
    # Of a later run it is a failure among others.
    but = {"runs/sync/seed-1": {"exit": 2, "report": False, "refused": True}}
    _, report, _ = bed.compare("later", ["--modes", "async,sync", "--seeds", "1", "--lr-grid", "none"], but)
    bed.check("the statuses", [run["status"] for run in report["runs"]], ["ok", "failed"])


def settings_of_a_mode_go_to_its_runs(bed):
    flags = ["--modes", "sync@4[batch=4],async[rate=0.01,rate_by_staleness]+prefetch,hogwild@2[push_every=1]", "--batch", "9",
             "--lr-grid", "none", "--seeds", "1"]
    where, report, _ = bed.compare("own", flags)
    bed.check("the runs", [(run["status"], run["error"]) for run in report["runs"]], [("ok", "")] * 3)
    sync, ahead, hogwild = (words_of(where, run["dir"]) for run in report["runs"])
    for name, words, wanted, without in (("sync", sync, ["--batch 4", "--no-overlap"], ["--rate"]),
                                         ("async", ahead, ["--batch 9", "--rate 0.01", "--rate-by-staleness"], ["--no-overlap"]),
                                         ("hogwild", hogwild, ["--push-every 2", "--no-overlap"], [])):
        text = " ".join(words) + " "
        for want in wanted:
            if want + " " not in text:
                bed.fail(f"{name} was not asked for {want}: {text}")
        bed.check(f"flags that {name} is without", [flag for flag in without if flag in words], [])
    bed.check("the settings of modes", [(m["name"], m["prefetch"], m["settings"]) for m in report["modes"]],
              [("sync@4[batch=4]", False, {"batch": "4"}),
               ("async[rate=0.01,rate_by_staleness]+prefetch", True, {"rate": "0.01", "rate-by-staleness": True}),
               ("hogwild@2[push_every=1]", False, {"push-every": "2"})])


def rates_are_tried_on_what_no_run_is_scored_on(bed):
    """By default, of three rates; a mode with a rate of its own has no tries."""
    where, report, _ = bed.compare("grid", ["--modes", "async,sync[rate=0.5],allreduce", "--seeds", "1"])
    bed.check("the rates", report["settings"]["rates"], [0.00033, 0.001, 0.003])
    bed.check("the share", (report["settings"]["grid_share"], report["settings"]["grid_metric"]), (0.2, "accuracy"))
    bed.check("the tries", [[one["rate"] for one in m["grid"]] for m in report["modes"]],
              [[0.00033, 0.001, 0.003], [], [0.00033, 0.001, 0.003]])
    bed.check("the rate of its own", report["modes"][1]["rate"], 0.5)
    tried, ran = words_of(where, "grid/async/0.001-seed-1001"), words_of(where, "runs/async/seed-1")
    for flag, in_try, in_run in (("--validation", "share=0.2", None), ("--keep", "last", None), ("--test", None, None)):
        bed.check(flag, [words[words.index(flag) + 1] if flag in words else None for words in (tried, ran)], [in_try, in_run])
    bed.check("what is scored", (tried[tried.index("--score") + 1], ran[ran.index("--score") + 1].endswith("digits.test.libsvm.gz")),
              ("validation", True))
    conf = open(where + "/grid/allreduce/0.001-seed-1001/score.conf").read()
    bed.check("the ranks' share and test set", ("validation_share = 0.2" in conf, "digits.test" in conf), (True, False))


def a_rate_of_another_run_is_not_chosen(bed):
    """The best samples of all are of a run whose report has another rate, and of one that did not end."""
    flags = ["--modes", "async", "--seeds", "1", "--lr-grid", "0.1,0.01,0.001"]
    _, plain, _ = bed.compare("rates", flags)
    mode = plain["modes"][0]
    ends = {one["rate"]: one["metric"] for one in mode["grid"]}
    best = max(ends, key=ends.get)
    bed.check("the rate", mode["rate"], best)
    for what in ({"settings": {"rate": 0.5}}, {"root": {"finished": False}}, {"exit": 1}):
        _, report, _ = bed.compare(f"rates-{next(iter(what))}", flags, {f"grid/async/{best:g}-seed-1001": what})
        bed.check(f"the rate without {best} ({what})", report["modes"][0]["rate"],
                  max((rate for rate in ends if rate != best), key=ends.get))


def the_cause_of_failed_tries_is_said(bed):
    """No rate has a metric, as each try failed: the runs that are not made have the tries' cause."""
    but = {f"grid/sync/{rate}-seed-1001": {"exit": 2, "refused": True} for rate in ("0.01", "0.1")}
    _, report, _ = bed.compare("tries", ["--modes", "async,sync", "--seeds", "1", "--lr-grid", "0.01,0.1"], but)
    tries = report["modes"][1]["grid"]
    bed.check("a try has a cause", tries[0]["error"] != "", True)
    bed.check("the runs of a mode whose tries failed", [run["error"] for run in report["runs"] if run["mode"] == "sync"],
              [f"none of the tried rates has a metric: {tries[0]['error']}"])


def main():
    with Bed(sys.argv[1]) as bed:
        the_cause_of_failed_tries_is_said(bed)
        each_run_is_asked_for_what_the_comparison_notes(bed)
        none_is_no_difference(bed)
        another_report_is_a_failure_by_name(bed)
        the_cause_is_that_of_the_failure(bed)
        a_mistake_ends_the_comparison_at_its_first_run(bed)
        settings_of_a_mode_go_to_its_runs(bed)
        rates_are_tried_on_what_no_run_is_scored_on(bed)
        a_rate_of_another_run_is_not_chosen(bed)
    sys.exit(bed.failures > 0)


if __name__ == "__main__":
    main()
