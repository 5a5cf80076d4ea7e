#!/usr/bin/env python3
"""Goal    report.json says what the runs of a comparison say, and each number of a page, in its tables, its sentences and its plots,
        is that of its report.
Method  reports whose numbers are drawn, all different (fake_programs.py); what they come to is worked out here from the runs alone
        (comparison_expected.py, training_expected.py); plots are read from their drawings by their own axes (page_reader.py).
Without gnuplot the plots are left out.
usage: test_pages.py PATH/TO/downpour"""
import json, re, sys
from comparison_expected import KINDS, QUANTITIES, Comparison
from fake_bed import Bed
from page_numbers import compare_bars, compare_lines, compare_tables, interval, is_number, number
from page_reader import Page
from training_expected import check_training_pages

NAMES = {"loss": "Loss", "accuracy": "Accuracy"}


def digits(quantity, value):
    """Of an interval."""
    if quantity in ("metric", "loss"):
        return 2 if abs(value) >= 10 else 4
    if quantity in ("seconds_to_target", "seconds", "minibatches_per_s"):
        return 1 if abs(value) >= 100 else 2
    return -1


def near(got, right):
    """As a report has it: with ten digits, and quantiles of four."""
    if not is_number(right):
        return got is None
    return is_number(got) and abs(got - right) <= 1e-4 * abs(right) + 1e-9


def check_intervals(bed, what, got, right):
    for key in ("n", "mean", "sd", "low", "high"):
        if not near(got.get(key), right[key]):
            bed.fail(f"{what}: {key} is {got.get(key)}, not {right[key]}")


def check_report(bed, what, root, right):
    target = root["settings"]["target"]
    bed.check(f"{what}: target", (target["metric"], near(target["value"], right.target)), (right.metric, True))
    for run in root["runs"]:
        own = next(r for r in right.runs[run["mode"]] if r.dir == run["dir"])
        bed.check(f"{what}: {own.dir}: status", run["status"], "ok" if own.good else "failed")
        bed.check(f"{what}: {own.dir}: samples", [s["examples"] for s in run["samples"]], [s["examples"] for s in own.samples])
        for part in ("staleness", "settings", "finished"):
            bed.check(f"{what}: {own.dir}: {part} of its report", json.dumps(rounded(run["report"][part])),
                      json.dumps(rounded(own.report[part])))
    for mode, one in zip(right.modes, root["statistics"]):
        good = len(right.good(mode))
        bed.check(f"{what}: {mode}: runs", (one["mode"], one["runs"], one["failed"]),
                  (mode, good, len(right.runs[mode]) - good))
        for quantity in QUANTITIES:
            name = f"{what}: statistics of {mode}: {quantity}"
            check_intervals(bed, name, one[quantity], right.own(mode, quantity))
            if mode == right.modes[0]:
                bed.check(f"{name}: difference", one[quantity]["difference"], None)
                continue
            difference, wanted = one[quantity]["difference"], right.difference(mode, quantity)
            check_intervals(bed, f"{name}: difference", difference, wanted)
            check_intervals(bed, f"{name}: ratio", difference.get("ratio", {"n": 0}), right.ratio(mode, quantity))
            whole = not quantity.endswith("_target") or all(
                sum(map(is_number, right.values(m, quantity))) == len(right.good(m)) for m in (mode, right.modes[0]))
            shown = whole and wanted["n"] >= 3 and (wanted["low"] > 0 or wanted["high"] < 0)
            bed.check(f"{name}: difference is shown", difference["shown"], shown)


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in sorted(value.items())}
    return [rounded(one) for one in value] if isinstance(value, list) else float(f"{value:.7g}") if is_number(value) else value


def check_said(bed, what, said, right):
    """What the command writes of each run as it ends."""
    for mode in right.modes:
        for run in right.good(mode):
            throughput, end = run.report["throughput"], run.value("metric", right.metric, right.target)
            words = f"{throughput['seconds']:.1f} s  {number(throughput['examples_per_s'], -1)} examples/s"
            words += f"  {right.metric} {end:.4f}" if is_number(end) else ""
            lines = [line for line in said.splitlines() if re.search(rf"  {mode}, seed {run.seed}[ ,]", line)]
            line = lines[-1] if lines else ""
            bed.check(f"{what}: what is said of {mode}, seed {run.seed}", line[-len(words):], words)


# ---- its page

def check_results(bed, page, root, right):
    rows, work = [], []
    for mode, one in zip(right.modes, root["statistics"]):
        work.append([mode, right.work(mode, "applied", "examples"), right.work(mode, "dropped", "late"),
                     right.work(mode, "dropped", "not_computed"), "-", "-"])
        cells = {q: interval(one[q], digits(q, one[q].get("mean") or 0)) for q in QUANTITIES}
        for q in ("seconds_to_target", "examples_to_target"):
            if one["runs"] and one[q]["n"] == 0:
                cells[q] = "not reached"
            elif one[q]["n"] < one["runs"]:
                cells[q] += f" ({one[q]['n']} of {one['runs']})"
        first = mode == right.modes[0]
        ratio = {"n": 0} if first else one["minibatches_per_s"]["difference"].get("ratio", {"n": 0})
        rows.append([mode, cells["metric"], cells["loss"], work[-1][1], cells["seconds_to_target"], cells["examples_to_target"],
                     cells["minibatches_per_s"], "1" if first else interval(ratio, 2), cells["seconds"], str(one["runs"]),
                     str(one["failed"])])
    table = page.table("mode", f"{right.metric} at the end", "loss at the end", "examples applied", "seconds to the target",
                       "examples to the target", "used minibatches/s", f"beside {right.modes[0]}", "seconds of training",
                       "runs", "failed")
    compare_tables(bed.check, "results", table, rows)
    compare_tables(bed.check, "work", page.table("mode", "examples applied", "came too late"), work)


def check_runs(bed, page, root, right):
    runs = {own.dir: own for mode in right.modes for own in right.runs[mode]}
    rows = []
    for run in root["runs"]:
        own = runs[run["dir"]]
        value = lambda q: own.value(q, right.metric, right.target)
        rows.append([own.dir, "ok" if own.good else "failed", number(value("metric"), 4), number(value("loss"), 5),
                     number(value("seconds_to_target"), 2), number(value("examples_per_s"), -1),
                     number(value("seconds"), 2), str(len(own.samples))])
    compare_tables(bed.check, "runs", page.table("run", "status", right.metric, "loss", "seconds to the target",
                                                 "used examples/s", "seconds of training", "samples"), rows)


def check_limits(bed, page, root, right):
    """The sentences are the command's, their numbers the runs'."""
    table = page.table("mode", "what it promises", "where its rule was the limit")
    compare_tables(bed.check, "promises", table, [[m["name"], m["promise"], None] for m in root["modes"]])
    for mode, row in zip(right.modes, table[1:]):
        waited = right.shares(mode)
        wanted = [f"{waited[6]:.0f}% of their time", f"{right.dropped(mode):.1f}% of the examples"] if waited else []
        bed.check(f"limit of {mode}", re.findall(r"[\d.]+% of (?:their time|the examples)", row[2]), wanted)


def check_settings(bed, page, root):
    table = page.table("setting", "value")
    shown = {key: value for key, value in root["settings"].items() if value is not None and value != []}
    bed.check("settings: names", [row[0] for row in table[1:]], list(shown))
    for key, text in table[1:]:
        value = shown[key]
        got = text if isinstance(value, str) else json.loads(text)
        if is_number(value) and near(got, value):
            continue
        if key == "target" and near(got["value"], value["value"]):
            got["value"] = value["value"]
        bed.check(f"settings: {key}", got, value)


def check_rates(bed, page, root):
    rows = [[mode["name"] + (" (chosen)" if one["rate"] == mode["rate"] else ""), f"{one['rate']:g}", str(one["seed"]),
             number(one["metric"], 4)] for mode in root["modes"] for one in mode["grid"]]
    if rows:
        compare_tables(bed.check, "rates", page.table("mode", "rate", "seed"), rows)


def check_words(bed, page, root, right):
    """Each number of the first paragraphs stands with its mode."""
    statistics = dict(zip(right.modes, root["statistics"]))
    text = " ".join(page.paragraphs)
    known = {m: one for m, one in statistics.items() if one["runs"]}
    def has(words):
        if words not in text:
            bed.fail(f"'{words}' is not in the page's words: {text[:3000]}")
    has(f"The target is {right.metric} {right.target:.4f}")
    for mode, one in known.items():
        if one["metric"]["n"]:
            has(f"{interval(one['metric'], 4)} ({mode})")
        speed = one["minibatches_per_s"]
        if mode == right.modes[0]:
            has(f"{mode} trained {interval(speed, digits('minibatches_per_s', speed['mean']))} minibatches a second")
        else:
            has(f"{mode} {interval(speed['difference']['ratio'], 2)}")
    for mode, quantity, unit in (("", "seconds_to_target", "seconds"), ("", "examples_to_target", "examples")):
        always = {m: one[quantity] for m, one in known.items() if one[quantity]["n"] == one["runs"]}
        if len(always) < 2:
            continue
        first = min(always, key=lambda m: always[m]["mean"])
        has(f"{first} reached it after {interval(always[first], digits(quantity, always[first]['mean']))} {unit}")
        beside = re.findall(r" took ([^ ]+ (?:\[[^]]*\] )?)times as many", text)
        ratios = {interval({**r, "mean": r["mean"]}, 2) + " " for r in pair_ratios(right, quantity, first, always)}
        if not any(b in ratios for b in beside):
            bed.fail(f"none of {beside} is one of the ratios of {quantity} beside {first}: {ratios}")


def pair_ratios(right, quantity, first, always):
    again = Comparison.__new__(Comparison)
    again.__dict__.update(right.__dict__, modes=[first] + [m for m in right.modes if m != first])
    return [again.ratio(m, quantity) for m in always if m != first]


def check_plots(bed, page, root, right):
    for key in dict.fromkeys((right.metric, "loss")):
        compare_lines(bed.check, page.figures[f"{NAMES[key]} over time"], right.curves(key, "seconds"))
        compare_lines(bed.check, page.figures[f"{NAMES[key]} over examples"], right.curves(key, "examples"))
    means = [right.own(mode, "minibatches_per_s")["mean"] for mode in right.modes]
    compare_bars(bed.check, page.figures["Throughput"], right.modes, stacked=True, series={
        mode: [mean if i == m else None for i in range(len(means))] for m, (mode, mean) in enumerate(zip(right.modes, means))})
    trained = [mode for mode in right.modes if right.good(mode)]
    parts = {mode: right.shares(mode) for mode in trained}
    compare_bars(bed.check, page.figures["Shares of the workers' time"], trained, stacked=True, series={
        name: [parts[mode][k] for mode in trained] for k, (name, _) in enumerate(KINDS)})
    for caption, gap, names in (("Staleness of a push", False, ["0", "1", "2+", "4+", "8+", "16+"]),
                                ("Clock gap of a push", True, ["0", "1", "2", "3+", "5+"])):
        series = right.staleness(gap)
        compare_bars(bed.check, page.figures[caption], names[:len(next(iter(series.values())))], series)
    for name in right.modes:
        colours = {figure.legend[name] for figure in page.figures.values() if name in figure.legend}
        bed.check(f"colours of {name} in all plots", len(colours), 1)
    for caption, figure in page.figures.items():
        bed.check(f"colours in '{caption}'", len(set(figure.legend.values())), len(figure.legend))
    courses = len(dict.fromkeys((right.metric, "loss")))
    bed.check("plots of the page", len(page.figures), 2 * courses + 4)


def check_comparison(bed, name, flags, seeds, metric="accuracy", target=None, but=None):
    modes = flags[flags.index("--modes") + 1].split(",")
    where, root, said = bed.compare(name, flags + ["--seeds", str(len(seeds)), "--seed", str(seeds[0])], but)
    right = Comparison(where, modes, seeds, metric, target)
    check_report(bed, name, root, right)
    check_said(bed, name, said, right)
    for gnuplot in (True, False):
        done = bed.call(["report", where], gnuplot)
        bed.check(f"{name}: exit code of report", done.returncode, 0)
        plots = gnuplot and bed.has_gnuplot
        page = Page(where + "/report.html")
        check_results(bed, page, root, right)
        check_runs(bed, page, root, right)
        check_limits(bed, page, root, right)
        check_settings(bed, page, root)
        check_rates(bed, page, root)
        check_words(bed, page, root, right)
        if plots:
            check_plots(bed, page, root, right)
        bed.check(f"{name}: there are plots", len(page.figures) > 0, plots)


def main():
    with Bed(sys.argv[1]) as bed:
        if not bed.has_gnuplot:
            print("skipped: the plots, as gnuplot is not installed")
        check_comparison(bed, "target", ["--modes", "sync,async,ssp:4,hogwild", "--workers", "2", "--target", "accuracy:0.6",
                                         "--sample-every", "50ms"], [1, 2, 3, 4], target=0.6,
                         but={"runs/async/seed-2": {"samples": "diverged"}, "runs/ssp-4/seed-3": {"samples": "short"},
                              "runs/ssp-4/seed-1": {"root": {"finished": False}}})
        check_comparison(bed, "automatic", ["--modes", "async,sync:1", "--workers", "2", "--sample-every", "50ms",
                                            "--lr-grid", "0.01,0.1"], [7, 8])
        # 12.71 * 199 / 199 is below 12.71: the last point of a curve is the last sample all the same.
        check_comparison(bed, "one", ["--modes", "async,sync", "--workers", "2", "--sample-every", "50ms"], [3],
                         but={"runs/sync/seed-3": {"end": 12.71}})
        check_training_pages(bed)
    sys.exit(bed.failures > 0)


if __name__ == "__main__":
    main()
