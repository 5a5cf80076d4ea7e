"""What the page of one training must say, worked out from its report."""
import json, os, random
from comparison_expected import KINDS, shares
from fake_programs import draw_report
from page_numbers import compare_bars, compare_lines, compare_tables, is_number, number
from page_reader import Page

# key, name, digits
METRICS = [("loss", "loss", 5), ("accuracy", "accuracy", 4), ("auc", "AUC", 5), ("rmse", "RMSE", 5), ("hr10", "HR@10", 4),
           ("ndcg10", "NDCG@10", 4), ("recall@20", "recall@20", 4), ("ndcg@20", "NDCG@20", 4)]
SETS = [("train", "training"), ("validation", "validation"), ("test", "test")]
SETTINGS = {"batch": "minibatch, examples", "rate": "learning rate"}
BOUNDS = [("computing", (0, 1)), ("the servers and the network", (3, 4, 5)), ("waiting for other workers", (6,)),
          ("injected delays", (7,)), ("reading data", (2,)), ("other work of the loop", (8,))]
POINTS = 400 # of a series, at most


def metric(epoch, name, key):
    if name == "train":
        return epoch.get("train_loss") if key == "loss" else None
    of = epoch.get(name, {})
    return of.get("all_items", {}).get(key) if "@" in key else of.get(key)


def check_final(bed, page, report):
    rows = [[name] + [number(metric(report["final"], s, key), digits) for s in ("validation", "test")] +
            [number(report["constant"].get(key), digits)] for key, name, digits in METRICS]
    compare_tables(bed.check, "at the end", page.table("metric, at the end", "validation set", "test set", "best constant"), rows)


def columns(report):
    return [(s, name, m) for s, name in SETS for m in METRICS if any(is_number(metric(e, s, m[0])) for e in report["epochs"])]


def check_epochs(bed, page, report):
    shown = columns(report)
    table = page.table("epoch")
    bed.check("epochs: headings", table[0], ["epoch"] + [f"{name} {m[1]}" for _, name, m in shown] + ["seconds", "examples/s"])
    epochs = {str(e["epoch"]): e for e in report["epochs"]}
    rows = []
    for number_, *_ in table[1:]:
        e = epochs.pop(number_, {})
        rows.append([number_] + [number(metric(e, s, m[0]), m[2]) for s, _, m in shown] +
                    [number(e.get("seconds"), 2), number(e.get("examples_per_s"), -1)])
    compare_tables(bed.check, "epochs", table, rows)
    if len(report["epochs"]) <= 200:
        bed.check("epochs that are not in the table", list(epochs), [])
    for needed in (1, len(report["epochs"]), best_epoch(report)["epoch"]):
        bed.check(f"epoch {needed} is in the table", str(needed) in epochs, False)


def best_epoch(report):
    return min(report["epochs"], key=lambda e: metric(e, "validation" if "validation" in e else "test", "loss"))


def distributions(report):
    """(caption of its plot, first heading of its table, names of buckets, counts)"""
    staleness = report["staleness"]
    def bounded(one, percent):
        names, before = [], None
        for upper in one["upper"]:
            to = None if upper is None else round(upper * (100 if percent else 1))
            low = None if before is None else before if percent else before + 1
            names.append(f"{low} or more" if to is None else f"{to}" if low is None or low == to else f"{low}–{to}")
            before = to
        return names, one["counts"]
    counts = list(staleness["histogram"])
    while counts[-1] == 0:
        counts.pop()
    powers = ["0", "1"] + [f"{2 ** b}–{2 ** (b + 1) - 1}" for b in range(1, len(counts) - 1)]
    return [("Staleness of a push", "pushes between pull and push", powers, counts),
            ("Clock gap of a push", "steps ahead", *bounded(staleness["clock_gap"]["histogram"], False)),
            ("Rows of a push that had changed since its pull", "share of its rows, %",
             *bounded(staleness["changed_histogram"], True))]


def check_distributions(bed, page, report):
    for caption, heading, names, counts in distributions(report):
        percent = [100 * count / sum(counts) for count in counts]
        rows = [[name, number(count, -1), number(p, 1)] for name, count, p in zip(names, counts, percent)]
        compare_tables(bed.check, caption, page.table(heading, "pushes", "% of the pushes"), rows)
        compare_bars(bed.check, page.figures[caption], names, {"pushes": percent})


def check_workers(bed, page, report):
    workers = report["workers"]
    rows = [[name] + [number(s, 2) for s in shares(one["spent_s"])]
            for name, one in [("all", report)] + [(str(w), one) for w, one in enumerate(workers)]]
    compare_tables(bed.check, "seconds of each kind", page.table("worker, seconds", *(name for name, _ in KINDS)), rows)
    rows = [[str(w), one["device"], number(one["examples"], -1), number(one["seconds"], 2), number(one["examples_per_s"], -1),
             number(one["pushes"], -1), number(one["staleness"]["mean"], 2), number(one["staleness"]["max"], -1)]
            for w, one in enumerate(workers)]
    compare_tables(bed.check, "workers", page.table("worker", "device", "examples", "seconds", "examples/s", "pushes",
                                                    "mean staleness", "max staleness"), rows)


def check_settings(bed, page, report):
    def text(value):
        return value if isinstance(value, str) else ("no", "yes")[value] if isinstance(value, bool) else f"{value:.10g}"
    def flat(of):
        for key, value in of.items():
            if isinstance(value, dict):
                yield from ([f"{key} {inner}", text(v)] for inner, v in value.items())
            else:
                yield [SETTINGS.get(key, key), text(value)]
    for heading, of in (("setting", report["settings"]), ("data", report["data"])):
        compare_tables(bed.check, heading, page.table(heading, "value"), list(flat(of)))


def check_words(bed, page, report):
    text = " ".join(page.paragraphs)
    def has(words):
        if words not in text:
            bed.fail(f"'{words}' is not in the page's words: {text[:2000]}")
    for name in ("test", "validation"):
        values = [f"{m[1]} {number(metric(report['final'], name, m[0]), m[2])}" for m in reversed(METRICS)]
        has(", ".join(values) + f" on the {name} set")
    best = best_epoch(report)
    set_name = "validation" if "validation" in best else "test"
    has(f"The best epoch by {set_name} loss was epoch {best['epoch']} ({number(metric(best, set_name, 'loss'), 5)})")
    speed = report["throughput"]
    has(f"The throughput was {number(speed['examples_per_s'], -1)} examples/s over {number(speed['seconds'], 1)} s of training")
    pushes = sum(one["pushes"] for one in report["workers"])
    has(f"Of {number(pushes, -1)} pushes {number(report['dropped']['pushes'], -1)} came too late")
    _, _, names, counts = distributions(report)[0]
    quantile = lambda share: next(n for b, n in enumerate(names) if sum(counts[:b + 1]) >= share * sum(counts))
    has(f"was {quantile(0.5)} at the median (p50) and {quantile(0.99)} at p99")
    spent = shares(report["spent_s"])
    parts = sorted(((100 * sum(spent[k] for k in kinds) / sum(spent), name) for name, kinds in BOUNDS), reverse=True)
    for percent, name in parts[:2]:
        if not any(f"{name}{rest}{percent:.0f}%" in text for rest in (
                ": ", ", ", " (requests, waiting for rows and answers): ", " (requests, waiting for rows and answers), ")):
            bed.fail(f"'{name}' with {percent:.0f}% is not in: {text[:2000]}")


def check_plots(bed, page, report):
    epochs = report["epochs"]
    last, most = len(epochs) - 1, min(len(epochs), POINTS) - 1
    chosen = [k * last // most for k in range(most + 1)]
    passed = [sum(e["seconds"] for e in epochs[:i + 1]) for i in range(len(epochs))]
    timed = all(e["seconds"] > 0 for e in epochs)
    for key, name, _ in METRICS:
        series = {f"{title} set": [metric(e, s, key) for e in epochs] for s, title in SETS}
        series = {title: values for title, values in series.items() if sum(map(is_number, values)) > 1}
        caption = name[0].upper() + name[1:]
        compare_lines(bed.check, page.figures[f"{caption} by epoch"],
                      {title: [(epochs[i]["epoch"], values[i]) for i in chosen] for title, values in series.items()})
        bed.check(f"'{caption} over time' is drawn", f"{caption} over time" in page.figures, timed)
        if timed:
            compare_lines(bed.check, page.figures[f"{caption} over time"],
                          {title: [(passed[i], values[i]) for i in chosen] for title, values in series.items()})
    speed = [e["examples_per_s"] for e in epochs]
    unit = next(u for u in (1e6, 1e3, 1) if max(speed) >= 10 * u or u == 1)
    figure = page.figures["Throughput by epoch"]
    bed.check("unit of throughput", {1e6: "million examples/s", 1e3: "thousand examples/s", 1: "examples/s"}[unit] in figure.labels, True)
    compare_lines(bed.check, figure, {"throughput": [(epochs[i]["epoch"], speed[i] / unit) for i in chosen]})
    if len(report["workers"]) > 1:
        bars = [shares(one["spent_s"]) for one in [report] + report["workers"]]
        compare_bars(bed.check, page.figures["Shares of the workers' time"], ["all"] + [str(w) for w in range(len(bars) - 1)],
                     {name: [100 * bar[k] / sum(bar) for bar in bars] for k, (name, _) in enumerate(KINDS)}, stacked=True)
    bed.check("plots of the page", len(page.figures), (2 if timed else 1) * len(METRICS) + 5)


def check_training(bed, name, report):
    where = f"{bed.dir}/{name}"
    os.mkdir(where)
    json.dump(report, open(where + "/report.json", "w"))
    done = bed.call(["report", where])
    bed.check(f"{name}: exit code of report", done.returncode, 0)
    page = Page(where + "/report.html")
    check_final(bed, page, report)
    check_epochs(bed, page, report)
    check_distributions(bed, page, report)
    check_workers(bed, page, report)
    check_settings(bed, page, report)
    check_words(bed, page, report)
    check_plots(bed, page, report)


def check_training_pages(bed):
    asked = {"seed": 1, "rate": 0.003, "workers": 3, "threads": 1, "consistency": "sync:1", "work": "fixed", "overlap": True}
    check_training(bed, "three-workers", draw_report(random.Random("three workers"), asked, 3, 12))
    # Many epochs, of which not all are shown; slow ones; without a validation set; of one epoch it is not known how long it took.
    long = draw_report(random.Random("many epochs"), {**asked, "workers": 1}, 1, 450)
    for epoch in long["epochs"]:
        epoch["examples_per_s"] /= 10
        del epoch["validation"]
    long["epochs"][37]["seconds"] = 0.0
    check_training(bed, "many-epochs", long)
