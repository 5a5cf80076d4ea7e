#!/usr/bin/env python3
"""Goal    report.json says what the runs of a comparison say, and each number of a page, in its tables, its sentences and its plots,
        is that of its report.
Method  reports whose numbers are drawn, all different (fake_programs.py); what they come to is worked out here from the runs alone
        (comparison_expected.py, training_expected.py); plots are read from their drawings by their own axes (page_reader.py).
usage: test_pages.py PATH/TO/downpour"""
import csv, hashlib, json, os, re, sys
from xml.etree import ElementTree
from comparison_expected import KINDS, QUANTITIES, Comparison, run_of_files
from fake_bed import JOB, Bed
from page_numbers import (compare_bars, compare_forest, compare_lines, compare_tables, by_text, digits, interval,
                          is_number, number, ratio_text)
from page_reader import Page
from training_expected import check_training_pages

NAMES = {"loss": "Loss", "accuracy": "Accuracy"}


def near(got, right):
    """As a report has it: with ten digits."""
    if not is_number(right):
        return got is None
    return is_number(got) and abs(got - right) <= 1e-6 * abs(right) + 1e-9


def check_intervals(bed, what, got, right):
    for key in ("n", "mean", "sd", "low", "high"):
        if not near(got.get(key), right.get(key)):
            bed.fail(f"{what}: {key} is {got.get(key)}, not {right.get(key)}")


def check_claim(bed, what, got, right):
    check_intervals(bed, f"{what}: difference", got, right["difference"])
    check_intervals(bed, f"{what}: ratio", got.get("ratio", {"n": 0}), right["ratio"])
    bed.check(f"{what}: test and scale", (got["test"], got["scale"]), (right["test"], right["scale"].name))
    bed.check(f"{what}: p {got['p']}, {right['p']}, and level {got['level']}, {right['level']}",
              (near(got["p"], right["p"]), near(got["level"], right["level"])), (True, True))
    bed.check(f"{what}: is shown", got.get("shown"), right.get("shown"))
    excluded = lambda one, none: is_number(one.get("low")) and not one["low"] <= none <= one["high"]
    if right["n"] and "shown" in got:
        bed.check(f"{what}: is shown by its interval", got["shown"], excluded(got, 0))
        bed.check(f"{what}: is shown by its ratio", got["shown"], excluded(got["ratio"], 1) if "ratio" in got else excluded(got, 0))


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
    check_statistics(bed, what, root, right)


def check_statistics(bed, what, root, right):
    claims = right.claims()
    for mode, one in zip(right.modes, root["statistics"]):
        ended = [len(right.ended(mode, outcome)) for outcome in ("good", "diverged", "failed")]
        bed.check(f"{what}: {mode}: runs", [one[key] for key in ("mode", "runs", "diverged", "failed")], [mode, *ended])
        for quantity in QUANTITIES:
            name = f"{what}: statistics of {mode}: {quantity}"
            if quantity.endswith("_to_target"):
                bed.check(f"{name}: of", one[quantity]["of"], ended[0])
            check_intervals(bed, name, one[quantity], right.own(mode, quantity))
            bed.check(f"{name}: scale", one[quantity]["scale"], right.scale(quantity).name)
            if mode == right.modes[0]:
                bed.check(f"{name}: difference", one[quantity]["difference"], None)
                continue
            claim = claims.get((quantity, mode, right.modes[0]))
            check_claim(bed, name, one[quantity]["difference"],
                        claim or right.with_level(right.evidence(quantity, mode, right.modes[0]), 0.05))
    bed.check(f"{what}: claims", len(root["claims"]), len(claims))
    for one in root["claims"]:
        key = one["quantity"], one["mode"], one["beside"]
        check_claim(bed, f"{what}: claim {key}", one, claims[key])


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
    rows, work, of_delays = [], [], None if any("efficiency" in run for run in root["runs"]) else "-" # test_efficiency.py
    for mode, one in zip(right.modes, root["statistics"]):
        work.append([mode, right.work(mode, "applied", "examples"), right.work(mode, "dropped", "late"),
                     right.work(mode, "dropped", "not_computed"), of_delays, of_delays])
        cells = {q: interval(one[q], digits(q, one[q].get("mean") or 0)) for q in QUANTITIES}
        for q in QUANTITIES:
            if q.endswith("_to_target") and one["runs"] and one[q]["n"] == 0:
                cells[q] = "not reached"
            elif 0 < one[q]["n"] < len(right.runs[mode]):
                cells[q] += f" ({one[q]['n']} of {len(right.runs[mode])})"
        first = mode == right.modes[0]
        ratio = "1" if first else ratio_text(one["examples_per_s"]["difference"].get("ratio", {"n": 0}))
        rows.append([mode, cells["metric"], cells["loss"], work[-1][1], cells["seconds_to_target"], cells["examples_to_target"],
                     cells["examples_per_s"], ratio, cells["seconds"], str(one["runs"]), str(one["diverged"]),
                     str(one["failed"])])
    table = page.table("mode", f"{right.metric} at the end", "loss at the end", "examples applied", "seconds to the target",
                       "examples to the target", "applied examples/s", f"beside {right.modes[0]}", "seconds of training",
                       "good runs", "diverged", "failed")
    compare_tables(bed.check, "results", table, rows)
    compare_tables(bed.check, "work", page.table("mode", "examples applied", "came too late"), work)


def check_runs(bed, page, root, right):
    runs = {own.dir: own for mode in right.modes for own in right.runs[mode]}
    rows = []
    for run in root["runs"]:
        own = runs[run["dir"]]
        value = lambda q: own.value(q, right.metric, right.target)
        rows.append([own.dir, right.status(own), number(value("metric"), 4), number(value("loss"), 5),
                     number(value("seconds_to_target"), 2), number(value("examples_per_s"), -1),
                     number(value("seconds"), 2), str(len(own.samples))])
    compare_tables(bed.check, "runs", page.table("run", "status", right.metric, "loss", "seconds to the target",
                                                 "applied examples/s", "seconds of training", "samples"), rows)


def check_limits(bed, page, root, right):
    """The sentences are the command's, their numbers the runs'."""
    table = page.table("mode", "promise", "where its rule was the limit")
    compare_tables(bed.check, "promises", table, [[m["name"], m["promise"], None] for m in root["modes"]])
    for mode, row in zip(right.modes, table[1:]):
        waited = right.shares(mode)
        dropped = [f"{100 * right.share(mode, 'dropped', key):.1f}%" for key in ("late", "not_computed")] if waited else []
        bed.check(f"limit of {mode}", re.findall(r"[\d.]+%", row[2].split("Each step")[0]),
                  [f"{waited[6]:.0f}%", *dropped] if waited else [])


def check_staleness(bed, page, root, right):
    """Means over the good runs of each mode."""
    columns = [("examples", "mean", 1), ("examples", "p50", -1), ("examples", "p90", -1), ("examples", "p99", -1), ("mean", None, 2),
               ("p50", None, 1), ("p90", None, 1), ("p99", None, 1), ("own", "mean", 2), ("clock_gap", "mean", 2), ("clock_gap", "max", -1)]
    rows = []
    for mode in right.modes:
        good = [run["report"]["staleness"] for run in root["runs"] if run["mode"] == mode and run["status"] == "ok"]
        of = lambda s, a, b: s[a] if b is None else s[a][b]
        rows.append([mode] + [number(sum(of(s, a, b) for s in good) / len(good), digits) if good else "-" for a, b, digits in columns])
    compare_tables(bed.check, "staleness", page.table("mode", "staleness in examples: mean"), rows)


SETTINGS = {"batch": "minibatch, examples", "rate": "learning rate", "sample_every_s": "time between samples, s"}


def text_of(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return f"{value:.10g}" if is_number(value) else str(value)


def flat(settings, within=""):
    for key, value in settings.items():
        name = (within + " " + SETTINGS.get(key, key.replace("_", " "))).strip()
        if isinstance(value, dict):
            yield from flat(value, name)
        elif value is not None and value != []:
            yield name, value


def check_settings(bed, page, root, right):
    """All of the comparison, all that the runs' reports have in common; what differs has a column for each mode."""
    own = [run.report for mode in right.modes for run in right.good(mode)]
    shown = {key: value for key, value in root["settings"].items()}
    for part in ("settings", "data"):
        for key, value in own[0][part].items():
            if key not in ("seed", "run") and all(r[part].get(key) == value for r in own):
                shown[key] = value if isinstance(value, dict) or key not in shown else shown[key]
    table = dict(page.table("setting", "value")[1:])
    for name, value in flat(shown):
        got = table.pop(name, None)
        if is_number(value) and got is not None and near(float(got), value):
            continue
        bed.check(f"settings: {name}", got, text_of(value))
    bed.check("settings of nothing", list(table), [])
    trained = [mode for mode in right.modes if right.good(mode)]
    differing = {row[0]: row[1:] for row in page.table("setting that differs", *trained)[1:]}
    bed.check("settings that differ: consistency", differing.get("consistency"),
              [right.good(mode)[0].report["settings"]["consistency"] for mode in trained])


def check_again(bed, page, root, where):
    """Build and files; the command is tried in report.sh."""
    table = dict(page.table("build", "value")[1:])
    bed.check("build: type", table["build type"], root["build"]["type"])
    bed.check("build: commit", table["commit"], root["build"]["commit"] or "not known")
    for name in ("libzmq", "rocksdb", "libprotobuf-c", "jansson"):
        bed.check(f"build: {name}", f"{name} {root['build']['libraries'][name]}" in table["libraries"], True)
    rows = []
    for flag in ("--train", "--test"):
        path = JOB[JOB.index(flag) + 1]
        content = open(path, "rb").read()
        rows.append([flag, path, number(len(content), -1), hashlib.blake2b(content, digest_size=16).hexdigest()])
    compare_tables(bed.check, "files of data", page.table("file of"), rows)


def check_files(bed, page, where, root, right):
    """What the page links is there, and the tables have the numbers of the runs."""
    for link in page.links:
        bed.check(f"link '{link}' is relative, and there", link[0] != "/" and ":" not in link and os.path.isfile(f"{where}/{link}"), True)
    figures = [link for link in page.links if link.startswith("figures/")]
    bed.check("figures as files", len(figures), len(page.figures))
    for link in figures:
        svg = ElementTree.parse(f"{where}/{link}").getroot()
        bed.check(f"{link} is SVG", svg.tag, "{http://www.w3.org/2000/svg}svg")
    runs = [run for mode in right.modes for run in right.runs[mode]]
    with open(where + "/curves.csv", newline="") as file:
        got = [(row["mode"], row["seed"], row["by"], row["seconds"], row["examples"], row["accuracy"], row["loss"])
               for row in csv.DictReader(file)]
    cell = lambda value: f"{value:.10g}" if is_number(value) else ""
    wanted = [(mode, str(run.seed), s["by"], *(cell(s[key]) for key in ("seconds", "examples", "accuracy", "loss")))
              for mode in right.modes for run in right.runs[mode] for s in run.samples]
    bed.check("curves.csv", sorted(got), sorted(wanted))
    with open(where + "/runs.csv", newline="") as file:
        got = {(row["mode"], row["seed"]): row for row in csv.DictReader(file)}
    bed.check("runs.csv: runs", len(got), len(runs))
    for mode in right.modes:
        for run in right.runs[mode]:
            row = got[mode, str(run.seed)]
            bed.check(f"runs.csv: status of {run.dir}", row["status"], right.status(run))
            for key, quantity in (("value", "metric"), *((q, q) for q in QUANTITIES[1:])):
                value = run.value(quantity, right.metric, right.target)
                bed.check(f"runs.csv: {key} of {run.dir}, '{row[key]}', {value}", near(float(row[key]) if row[key] else None, value), True)


def check_rates(bed, page, root):
    rows = [[mode["name"] + (" (chosen)" if one["rate"] == mode["rate"] else ""), f"{one['rate']:g}", str(one["seed"]),
             number(one["metric"], 4)] for mode in root["modes"] for one in mode["grid"]]
    if rows:
        compare_tables(bed.check, "rates", page.table("mode", "rate", "seed"), rows)


def check_words(bed, page, root, right):
    """Each number of the first paragraphs stands with its mode; what is claimed of two modes is a claim that is shown."""
    text, claims = " ".join(page.paragraphs), right.claims()
    def has(words):
        if words not in text:
            bed.fail(f"'{words}' is not in the page's words: {text[:3000]}")
    has(f"The target is {right.metric} {right.target:.4g}")
    for mode in right.modes:
        for outcome in ("diverged", "failed"):
            count = len(right.ended(mode, outcome))
            plural = "" if len(right.runs[mode]) == 1 else "s"
            said = f"{mode} {outcome} with {count} of {len(right.runs[mode])} seed{plural}: "
            bed.check(f"'{said}'", said in text, count > 0)
    statistics = dict(zip(right.modes, root["statistics"]))
    for mode in filter(right.is_whole, right.modes):
        one = statistics[mode]
        for quantity in ("metric", "seconds_to_target", "examples_to_target"):
            if one[quantity]["n"] == len(right.runs[mode]):
                has(f"{interval(one[quantity], digits(quantity, one[quantity]['mean']))} ({mode})")
        if right.reached(mode) < len(right.runs[mode]):
            has(f"{mode} reached it with {right.reached(mode)} of {len(right.runs[mode])} seed")
        speed = one["examples_per_s"]
        has(f"{mode} {interval(speed, digits('examples_per_s', speed['mean']))}")
    check_claimed(bed, text, right, claims)


def check_claimed(bed, text, right, claims):
    first, differs, needed, sooner = right.modes[0], [], [], []
    for (quantity, mode, beside), claim in claims.items():
        if quantity == "metric" and claim["shown"]:
            differs.append(f"{mode} is {by_text(claim['difference'])}")
        if quantity == "examples_to_target" and claim["shown"]:
            needed.append(f"{mode} needed {ratio_text(claim['ratio'])} times as many examples")
        if quantity == "seconds_to_target" and claim["ratio"]["n"] and claim["shown"]:
            one = claim["ratio"]
            other = {"n": one["n"], "mean": 1 / one["mean"], "low": 1 / one["high"], "high": 1 / one["low"]}
            for than, ratio in ((mode, one), (beside, other)):
                sooner.append(f"{ratio_text(ratio)} times as fast as {than}")
        if quantity == "examples_per_s" and claim["ratio"]["n"] and f", {ratio_text(claim['ratio'])} times those of {first}" not in text:
            bed.fail(f"the speed of {mode} beside {first} is not in: {text[:3000]}")
    for pattern, right_ones in ((r"\S+ is (?:lower|higher) by \S+ \[[^]]*\]", differs), (r"\S+ needed \S+ \[[^]]*\] times as many examples", needed)):
        bed.check(f"claims like '{pattern}'", sorted(re.findall(pattern, text)), sorted(right_ones))
    text = re.sub(r" sooner than ([^ ,.]+), (\S+ \[[^]]*\] times as fast)", r" \2 as \1", text)
    for said in re.findall(r"\S+ \[[^]]*\] times as fast as [^ ,.]+", text):
        if said not in sooner:
            bed.fail(f"'{said}' is not among the claims that are shown: {sooner}")


def check_plots(bed, page, root, right):
    plots = 4 # throughput, shares, staleness, clock gap
    for key in dict.fromkeys((right.metric, "loss")):
        flips = key == "accuracy" and right.ends_high()
        level = (1 - right.target if flips else right.target) if key == right.metric else None
        for over, words in (("seconds", "over time"), ("examples", "over examples")):
            curves = right.curves(key, over)
            if flips:
                flip = lambda value: 1 - value if is_number(value) else None
                curves = {m: [(x, flip(y), flip(high), flip(low)) for x, y, low, high in c] for m, c in curves.items()}
            name = "1 − accuracy" if flips else NAMES[key]
            compare_lines(bed.check, page.figures[f"{name} {words}"], curves, level, flips)
            plots += 1
    compare_lines(bed.check, page.figures["Time to each loss"], right.seconds_to_losses())
    plots += 1
    bed.check("first plot", list(page.figures)[0].endswith(("ccuracy over time", "Loss over time")), True)
    plots += check_forests(bed, page, right) + check_rate_plot(bed, page, root, right)
    own = [right.own(mode, "examples_per_s") for mode in right.modes]
    compare_bars(bed.check, page.figures["Throughput"], right.modes, stacked=True, series={
        mode: [own[m]["mean"] if i == m else None for i in range(len(own))] for m, mode in enumerate(right.modes)},
        errors=[(mode, m, own[m]["low"], own[m]["high"]) for m, mode in enumerate(right.modes) if own[m]["n"] > 1])
    trained = [mode for mode in right.modes if right.good(mode)]
    parts = {mode: right.shares(mode) for mode in trained}
    compare_bars(bed.check, page.figures["Shares of the workers' time"], trained, stacked=True, series={
        name: [parts[mode][k] for mode in trained] for k, (name, _) in enumerate(KINDS)})
    for caption, gap, names in (("Staleness of a push", False, ["0", "1", "2+", "4+", "8+", "16+"]),
                                ("Clock gap of a push", True, ["0", "1", "2", "3+", "5+"])):
        series = right.staleness(gap)
        buckets = len(next(iter(series.values())))
        compare_bars(bed.check, page.figures[caption], names[:buckets],
                     {mode: [one["mean"] for one in all] for mode, all in series.items()},
                     errors=[(mode, b, max(one["low"], 0), min(one["high"], 100)) for mode, all in series.items()
                             for b, one in enumerate(all) if one["n"] > 1])
    for name in right.modes:
        colours = {figure.legend[name] for figure in page.figures.values() if name in figure.legend}
        bed.check(f"colours of {name} in all plots", len(colours), 1)
        bed.check(f"colour of {name}", colours <= {COLOURS[name]}, True)
    for caption, figure in page.figures.items():
        legend = {name: colour for name, colour in figure.legend.items() if not name.startswith(("target", "no difference"))}
        bed.check(f"colours in '{caption}'", len(set(legend.values())), len(legend))
    bed.check("plots of the page", len(page.figures), plots)


COLOURS = {"async": "#0072b2", "sync": "#d55e00", "ssp:4": "#009e73", "hogwild": "#cc79a7", "sync:1": "#e69f00"}


def check_forests(bed, page, right):
    """Intervals of claims, which the page's sentences have, too."""
    count, claims = 0, right.claims()
    for caption, quantity, of in ((f"{NAMES[right.metric]} at the end, difference", "metric", "difference"),
                                  ("Time to the target, ratio", "seconds_to_target", "ratio"),
                                  ("Examples to the target, ratio", "examples_to_target", "ratio")):
        rows = {mode: claims[quantity, mode, right.modes[0]][of] for mode in right.modes[1:]}
        rows = {mode: one for mode, one in rows.items() if is_number(one.get("low"))}
        bed.check(f"'{caption}' is drawn", caption in page.figures, bool(rows))
        if rows:
            compare_forest(bed.check, page.figures[caption], rows, int(of == "ratio"))
        count += bool(rows)
    return count


def check_rate_plot(bed, page, root, right):
    rates = sorted(root["settings"]["rates"])
    if rates:
        series = {m["name"]: [(rate, right.plain([t["metric"] for t in m["grid"] if t["rate"] == rate])["mean"]) for rate in rates]
                  for m in root["modes"]}
        compare_lines(bed.check, page.figures[f"{NAMES[right.metric]} by learning rate"], series)
    return bool(rates)


def check_comparison(bed, name, flags, seeds, metric="accuracy", target=None, but=None):
    modes = flags[flags.index("--modes") + 1].split(",")
    where, root, said = bed.compare(name, flags + ["--seeds", str(len(seeds)), "--seed", str(seeds[0])], but)
    runs = {mode: [run_of_files(where, mode, seed) for seed in seeds] for mode in modes}
    right = Comparison(modes, runs, metric, target, examples=360)
    check_report(bed, name, root, right)
    check_said(bed, name, said, right)
    done = bed.call(["report", where])
    bed.check(f"{name}: exit code of report", done.returncode, 0)
    page = Page(where + "/report.html")
    check_results(bed, page, root, right)
    check_runs(bed, page, root, right)
    check_limits(bed, page, root, right)
    check_staleness(bed, page, root, right)
    check_settings(bed, page, root, right)
    check_again(bed, page, root, where)
    check_files(bed, page, where, root, right)
    check_rates(bed, page, root)
    check_words(bed, page, root, right)
    check_plots(bed, page, root, right)


def main():
    with Bed(sys.argv[1]) as bed:
        check_comparison(bed, "target", ["--modes", "sync,async,ssp:4,hogwild", "--workers", "2", "--target", "accuracy:0.6",
                                         "--sample-every", "50ms"], [1, 2, 3, 4], target=0.6,
                         but={"runs/async/seed-2": {"samples": "diverged"}, "runs/ssp-4/seed-3": {"samples": "short"},
                              "runs/ssp-4/seed-1": {"root": {"finished": False}}})
        check_comparison(bed, "automatic", ["--modes", "async,sync:1", "--workers", "2", "--sample-every", "50ms",
                                            "--lr-grid", "0.01,0.1"], [7, 8])
        # 12.71 * 199 / 199 is below 12.71: the last point of a curve is the last sample all the same.
        check_comparison(bed, "one", ["--modes", "async,sync", "--workers", "2", "--sample-every", "50ms"], [3],
                         but={"runs/sync/seed-3": {"end": 12.71}})
        check_comparison(bed, "high", ["--modes", "async,sync", "--workers", "2", "--sample-every", "50ms"], [11, 12, 13],
                         but={f"runs/async/seed-{seed}": {"samples": "high"} for seed in (11, 12, 13)})
        check_training_pages(bed)
    sys.exit(bed.failures > 0)


if __name__ == "__main__":
    main()
