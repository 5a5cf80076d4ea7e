"""Numbers and intervals as pages write them, and how a plot is held against the series that it must show."""
import math
from page_reader import BAR, NEAR


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(value, digits):
    """digits < 0: whole, in groups of three. What is not known is a dash."""
    if not is_number(value):
        return "-"
    text = f"{value:,.0f}" if digits < 0 else f"{value:.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def digits(quantity, value):
    """Of an interval of a mode."""
    if quantity in ("metric", "loss"):
        size = abs(value)
        return -1 if size >= 1000 else 2 if size >= 10 else 4 if size >= 0.01 or size == 0 else min(12, 2 - math.floor(math.log10(size)))
    if quantity in ("seconds_to_target", "seconds", "minibatches_per_s"):
        size = abs(value)
        return 1 if size >= 100 else 2 if size >= 0.1 or size == 0 else min(12, 2 - math.floor(math.log10(size)))
    return -1


def interval(one, digits):
    """one: {"n", "mean", "low", "high"}"""
    if one["n"] == 0:
        return "-"
    mean = number(one["mean"], digits)
    if not is_number(one.get("low")) or not is_number(one.get("high")):
        return mean
    if one["high"] > 1000 * abs(one["mean"]):
        return f"{mean} [{one['low']:.2g}, {one['high']:.2g}]"
    return f"{mean} [{number(one['low'], digits)}, {number(one['high'], digits)}]"


def _apart(one, none, digits):
    """With more digits where the interval excludes `none`, and would not look like it."""
    if is_number(one.get("low")) and (one["low"] > none) == (one["high"] > none):
        nearest = min(abs(one["low"] - none), abs(one["high"] - none))
        while 0 < nearest * 10 ** digits < 0.6 and digits < 8:
            digits += 1
    return digits


def ratio_text(one):
    return interval(one, _apart(one, 1, 2 if one["n"] == 0 or one["mean"] < 10 else 1))


def difference_text(one):
    largest, digits = max(abs(one[key]) for key in ("mean", "low", "high") if is_number(one.get(key))), 2
    while digits < 8 and 0 < largest * 10 ** digits < 10:
        digits += 1
    for _ in range(2):
        digits += is_number(one.get("low")) and digits < 8 and 0 < (one["high"] - one["low"]) * 10 ** digits < 2
    return interval(one, _apart(one, 0, digits))


def by_text(one):
    """lower by 0.002 [0.001, 0.003]"""
    if one["mean"] >= 0:
        return "higher by " + difference_text(one)
    minus = lambda value: -value if is_number(value) else value
    return "lower by " + difference_text({**one, "mean": -one["mean"], "low": minus(one["high"]), "high": minus(one["low"])})


def compare_tables(check, what, table, rows):
    check(f"{what}: rows", len(table) - 1, len(rows))
    for got, right in zip(table[1:], rows):
        check(f"{what}: columns of {right[0]}", len(got), len(table[0]))
        for heading, cell, wanted in zip(table[0], got, right):
            if wanted is not None: # compared elsewhere
                check(f"{what}: '{heading}' of {right[0]}", cell, wanted)


def _near(check, what, got, right):
    if len(got) != len(right):
        check(f"{what}: points", len(got), len(right))
        return
    for i, ((x, y), (right_x, right_y)) in enumerate(zip(got, right)):
        if abs(x - right_x) > NEAR or abs(y - right_y) > NEAR:
            check(f"{what}: point {i}, as drawn", (x, y), (round(right_x, 2), round(right_y, 2)))
            return


def compare_lines(check, figure, series, level=None, log=False):
    """series: name -> [(x, y)] or [(x, y, low, high)]; what is not a number is left out. log: a logarithmic scale is wanted."""
    drawn = {name: [p for p in points if all(map(is_number, p[:2]))] for name, points in series.items()}
    what = f"plot '{figure.caption}'"
    check(f"{what}: series", [n for n in figure.legend if not n.startswith("target")] or [next(iter(drawn))], list(drawn))
    check(f"{what}: lines", len(figure.lines), len(drawn))
    values = [p[1] for points in drawn.values() for p in points] + ([level] if level is not None else [])
    wants_log = min(values) > 0 and (log or max(values) >= 30 * min(values)) and not figure.caption.startswith("Throughput")
    check(f"{what}: has a logarithmic scale", figure.is_log(), wants_log)
    x, y = figure.place_x(), figure.place_y()
    ends = [v for points in drawn.values() for p in points for v in p[2:] if is_number(v)]
    floor = max(min(ends + values), min(values) / 2) if wants_log else -math.inf
    for n, (name, points) in enumerate(drawn.items()):
        right = [(x(p[0]), y(p[1])) for p in points]
        colour = figure.colour(name)
        _near(check, f"{what}: {name}", figure.lines.get(colour, []), right)
        _near(check, f"{what}: marks of {name}", figure.points.get(colour, []), _marks(series[name], n, len(series), x, y))
        bounds = [p for p in points if all(map(is_number, p)) and len(p) == 4]
        there = [(x(p[0]), y(max(p[2], floor))) for p in bounds]
        back = [(x(p[0]), y(max(p[3], floor))) for p in reversed(bounds)]
        _near(check, f"{what}: band of {name}", sum(figure.bands.get(colour, []), []), there + back)
    check(f"{what}: has a target", len(figure.levels), 0 if level is None else 2)
    for position in figure.levels:
        check(f"{what}: target, as drawn", abs(position[1] - y(level)) <= NEAR, True)


def _marks(points, n, count, x, y):
    """Of up to 40 points each; else about eight, at other places in each series."""
    each = 1 if len(points) <= 40 else len(points) // 8
    at = range(each * (2 * n + 1) // (2 * count), len(points), each)
    return [(x(points[i][0]), y(points[i][1])) for i in at if all(map(is_number, points[i][:2]))]


def compare_forest(check, figure, rows, none):
    """rows: name -> {"mean", "low", "high"}; none: where there is no difference."""
    what = f"plot '{figure.caption}'"
    x, row = figure.place_x(), figure.place_row(list(rows))
    for i, (name, one) in enumerate(rows.items()):
        ends = (x(one["low"]), x(one["high"]))
        at = [(p, c) for c, points in figure.points.items() for p in points if abs(p[1] - row(i)) <= NEAR]
        check(f"{what}: dots of {name}", len(at), 1)
        for (dot, colour) in at:
            check(f"{what}: dot of {name}, as drawn", abs(dot[0] - x(one["mean"])) <= NEAR, True)
            line = [p[0] for p in figure.lines.get(colour, []) if abs(p[1] - row(i)) <= 10]
            if not line or abs(min(line) - ends[0]) > 2 * NEAR or abs(max(line) - ends[1]) > 2 * NEAR:
                check(f"{what}: interval of {name}, as drawn", line, ends)
    check(f"{what}: lines of no difference", [abs(p[0] - x(none)) <= 2 * NEAR for p in figure.levels], [True, True])


def compare_bars(check, figure, categories, series, stacked=False, label=lambda name: name, errors=()):
    """series: name -> a value of each category, of which None is not there. errors: (name, category, low, high)"""
    what = f"plot '{figure.caption}'"
    check(f"{what}: series", list(figure.legend) or [next(iter(series))], list(series))
    labels = [label(c) for c in categories]
    check(f"{what}: names of bars", [text for _, text in figure.x_tics if text not in labels], [])
    x, y = figure.place_category(labels), figure.place_y()
    width = BAR if stacked else BAR / len(series)
    bottoms = [0.0] * len(categories)
    for n, (name, values) in enumerate(series.items()):
        left = -BAR / 2 + (0 if stacked else n * width)
        boxes = {}
        for box in figure.boxes.get(figure.colour(name), []):
            xs, ys = [p[0] for p in box], [p[1] for p in box]
            boxes[round((min(xs) - x(left)) / (x(1) - x(0)), 2)] = (min(xs), max(xs), max(ys), min(ys))
        check(f"{what}: bars of {name} that stand nowhere", [at for at in boxes if at not in range(len(categories))], [])
        for i, value in enumerate(values):
            got = boxes.get(i)
            if not value:
                check(f"{what}: {name} of {categories[i]}", got is None or got[2] - got[3] <= 2 * NEAR, True)
                continue
            right = (x(i + left), x(i + left + width), y(bottoms[i]), y(bottoms[i] + value))
            if got is None or any(abs(a - b) > 2 * NEAR for a, b in zip(got, right)):
                check(f"{what}: {name} of {categories[i]}, as drawn", got, tuple(round(v, 2) for v in right))
            bottoms[i] += value if stacked else 0
    ends = {(round(a, 1), round(b, 1)) for a, b in figure.errors}
    for name, i, low, high in errors:
        n = list(series).index(name)
        at = x(i - BAR / 2 + (0 if stacked else n * width) + width / 2)
        for value in (low, high):
            if not any(abs(a - at) <= 0.1 and abs(b - y(value)) <= 0.1 for a, b in ends):
                check(f"{what}: error bar of {name} at {categories[i]}, to {value}", "none", (round(at, 1), round(y(value), 1)))
    check(f"{what}: there are error bars", bool(ends), bool(errors))
