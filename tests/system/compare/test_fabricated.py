#!/usr/bin/env python3
"""Goal    a page claims a difference that is there, and none that is not; what went wrong is said first; its words imply no winner.
Method  pages of fabricated reports whose truth is known (fabricated.py), read as a person reads them: the first paragraphs.
usage: test_fabricated.py PATH/TO/downpour [--show]"""
import math, random, re, sys, tempfile
from fabricated import Pages, failed, learning

# Words that order two modes. A speed is a ratio with its interval.
ORDER = re.compile(r"sooner|before all others|better|(?<!no )worse|is (?:lower|higher) by|needed|more than chance|, though")
SPEED = re.compile(r"[\d.]+ \[([\d.]+), ([\d.]+)\] times those of")
failures = 0


def check(what, right, text):
    global failures
    if "--show" in sys.argv:
        print(f"## {what}\n{text}\n")
    if not right:
        failures += 1
        print(f"FAILED: {what}: {text}")


def claims(text):
    speeds = [m for m in SPEED.finditer(text) if not float(m.group(1)) <= 1 <= float(m.group(2))]
    return ORDER.findall(text) + [m.group(0) for m in speeds]


def shown(pages, modes, seeds, **more):
    """What was found, without how the page came about."""
    paragraphs = pages.paragraphs(modes, seeds, **more)
    return " ".join(paragraphs[:next(i for i, p in enumerate(paragraphs) if " was trained in " in p)])


def first_two(text):
    return " ".join(re.split(r"(?<=[.]) ", text)[:2])


# ---- differences

def noisy(rng, factor=1.0, spread=0.05, end=0.9, end_spread=0.01):
    """Seeds differ, and so do two runs with one seed."""
    return lambda seed: learning(end=min(0.97, max(0.83, rng.gauss(end, end_spread))), seconds=2 * factor * math.exp(rng.gauss(0, spread)),
                                 examples_per_s=1000 / factor * math.exp(rng.gauss(0, 0.05)))


def known_effect(pages):
    rng, named = random.Random(1), 0
    for _ in range(20):
        text = shown(pages, {"A": noisy(rng), "B": noisy(rng, 0.8)}, 5)
        named += bool(re.match(r"B reached accuracy 0.8 sooner than A, 1\.\d+ \[1\.\d+, 1\.\d+\] times as fast", text))
    check(f"20% less time, of 5 seeds with a spread of 5%, is named on {named} of 20 pages", named >= 18, text)


def no_effect(pages, modes, count, most):
    rng, claimed, text = random.Random(modes), 0, ""
    names = [f"m{i}" for i in range(modes)]
    for _ in range(count):
        page = shown(pages, {name: noisy(rng) for name in names}, 5)
        found = claims(page)
        claimed += bool(found)
        text = page if found or not text else text
        answer = page.split(" is shown" if modes == 2 else " first is not shown")[0]
        if not found:
            check("modes that do not differ are named in their order", answer == "No difference between m0 and m1" if modes == 2 else
                  answer == f"Which of {', '.join(names[:-1])} and {names[-1]} reached accuracy 0.8", page)
        check("there is no stump", not re.search(r": *[.]|: *$|[.] *[.]", page), page)
    check(f"{modes} equal modes: a difference is claimed on {claimed} of {count} pages", claimed <= most, text)


def power_in_percent(pages):
    """By bisection of the spread: just below a factor of two the power reads 100%, without an exponent."""
    low, high, text = 0.0, 0.5, ""
    for _ in range(16):
        spread = (low + high) / 2
        run = lambda spread: lambda seed: learning(seconds=2 * math.exp(spread * (seed - 2)), every=0.005, scored=None)
        text = shown(pages, {"A": run(0), "B": run(spread)}, 3)
        if "a difference of about 100% in time" in text:
            return
        found = re.search(r"a difference of about (\S+)% in time", text)
        low, high = (spread, high) if found and float(found.group(1)) < 100 else (low, spread)
    check("a power of 100% is written so", False, text)


def counts(pages):
    """Two equal modes whose seeds reach the target with a probability of one half."""
    rng, claimed, text = random.Random(3), 0, ""
    for _ in range(20):
        half = {name: (lambda seed: learning(end=rng.choice((0.78, 0.82)), scored=None)) for name in "AB"}
        text = shown(pages, half, 5)
        claimed += bool(claims(text))
    check(f"equal modes that reach the target or not: claimed on {claimed} of 20 pages", claimed <= 1, text)


def cost(pages):
    rng = random.Random(4)
    text = shown(pages, {"A": noisy(rng, 5, 0.02, 0.95, 0.001), "B": noisy(rng, 1, 0.02, 0.85, 0.001)}, 5, rates=[0.1, 0.2, 0.3])
    check("what the faster one costs is said", re.match(
        r"B reached accuracy 0.8 sooner than A, \d\.\d+ \[\d\.\d+, \d\.\d+\] times as fast but ended worse \(accuracy lower by 0\.1\d* \[[^]]*\]\), "
        r"each at the best of three rates\.", text), text)
    big = lambda factor: lambda seed: learning(seconds=2 * factor * math.exp(rng.gauss(0, 0.02)), end=rng.gauss(0.9, 0.001), scored=100000)
    text = shown(pages, {"A": big(1), "B": big(6)}, 5)
    check("that it costs nothing is said", re.match(
        r"A reached accuracy 0.8 sooner than B, (5|6)\.\d+ \[[^]]*\] times as fast and ended no worse, within 0.00\d+ \(accuracy (lower|higher) by 0.00\d+ \[", text), text)
    text = shown(pages, {"A": noisy(rng, 1, 0.02, 0.85, 0.001), "B": noisy(rng, 3, 0.02, 0.95, 0.001), "C": noisy(rng, 9, 0.02, 0.96, 0.001)}, 5)
    check("what the first of three costs is said", re.search(
        r", the last, at one rate for all modes\. B ended better than A \(accuracy higher by 0\.1\d* \[[^]]*\]\)\. "
        r"C ended better than A \(accuracy higher by 0\.1\d* \[[^]]*\]\)\.", text), text)
    text = shown(pages, {"A": big(1), "B": big(3), "C": big(9)}, 5)
    check("of three, the first, the next and the last are named", re.match(
        r"A reached accuracy 0.8 before all others, \S+ \[[^]]*\] times as fast as B, the next, and \S+ \[[^]]*\] times as fast as C, "
        r"the last, at one rate for all modes\. B and C ended no worse than A, within 0\.00\d+\.", text), text)


def reached_by_one(pages):
    """Of three modes one reached the target: it alone, not before the others; by Fisher's test it may be chance."""
    rng = random.Random(8)
    low, always = lambda seed: learning(end=0.78), lambda seed: learning()
    text = shown(pages, {"A": lambda seed: learning(end=0.9 if seed < 3 else 0.78), "B": low, "C": low}, 5)
    check("one mode with some seeds", text.startswith(
        "A alone reached accuracy 0.8, with 2 of 5 seeds, at one rate for all modes. "
        "B and C did not reach it with any seed, which may be chance (Fisher's exact test, p = 0.44)."), text)
    text = shown(pages, {"A": always, "B": low, "C": low}, 3)
    check("one mode with all of three seeds", re.match(
        r"A alone reached accuracy 0.8 with all three seeds, after 2\.00 \[[^]]*\] seconds, at one rate for all modes\. "
        r"B and C did not reach it with any seed, which may be chance \(Fisher's exact test, p = 0\.1\)\.", text), text)
    text = shown(pages, {"A": always, "B": low, "C": low}, 12)
    check("one mode with all of twelve seeds", re.search(r"B and C did not reach it with any seed \(more than chance: ", text), text)
    once = lambda seed: failed("cannot connect") if seed == 2 else learning()
    text = shown(pages, {"A": always, "B": low, "C": once, "D": low}, 5)
    check("a mode that failed may have reached it, too", "Of the modes that ended well with every seed, A alone reached" in text, text)
    text = shown(pages, {"A": low, "B": low, "C": once}, 5)
    check("no mode but one that failed reached it", "Of the modes that ended well with every seed, none reached accuracy 0.8" in text, text)
    text = shown(pages, {"A": noisy(rng, 1, 0.01), "B": noisy(rng, 3, 0.01), "C": low}, 5)
    check("one mode of three did not", re.match(
        r"A reached accuracy 0.8 before all others that did with every seed, \S+ \[[^]]*\] times as fast as B", text), text)


# ---- what looks like a difference

def jagged(factor):
    """Its metric goes up and down by what it has seen, so that more samples cross a target sooner; some are taken by examples."""
    def run(seed):
        out = learning(seconds=0.5 * factor, examples_per_s=5000 / factor, scored=None)
        samples = out["samples"]
        for i, sample in enumerate(samples):
            sample["by"] = "time"
        samples += [{**samples[0], "seconds": n / 5000 * factor, "examples": n, "by": "examples"} for n in range(500, 6000, 500)]
        samples.sort(key=lambda sample: sample["examples"])
        for sample in samples[1:-1]:
            learned = 0.1 + 0.8 * (1 - math.exp(-2.08 * sample["examples"] / (2500 + 50 * seed)))
            sample["accuracy"] = learned + random.Random(f"{seed} {sample['examples']}").gauss(0, 0.05)
        return out
    return run


def slower(pages):
    """Bit-identical trainings, one ten times slower; samples by time."""
    each = {seed: math.exp(random.Random(seed).gauss(0, 0.05)) for seed in range(1, 6)}
    run = lambda factor: lambda seed: learning(seconds=0.5 * factor * each[seed], examples_per_s=5000 / factor, scored=None)
    for names, kind in (((("A", 1), ("B", 10)), run), ((("A", 10), ("B", 1)), run), ((("A", 1), ("B", 10)), jagged)):
        text = shown(pages, {name: kind(factor) for name, factor in names}, 5)
        check("no order in examples of equal trainings", "needed" not in text and "No difference from A in examples to the target" in text, text)
        check("an order in time of one that is slower", re.match(r"[AB] reached accuracy 0.8 sooner than [AB], \S+ \[[^]]*\] times as fast", text), text)
    figures = re.search(r"Examples to it: ([^(]*) \(A\), ([^(]*) \(B\)", text)
    check("the examples to the target are those of samples by examples", figures and figures.group(1) == figures.group(2), text)
    check("and so is the time", text.startswith("A reached accuracy 0.8 sooner than B, 10.0 ["), text)


def ties(pages):
    tie = lambda seed: learning()
    text = shown(pages, {"A": tie, "B": tie}, 3)
    check("exact ties", not claims(text) and text.startswith("No difference between A and B is shown"), text)
    text = shown(pages, {"A": tie, "B": lambda seed: learning(seconds=2.05, end=0.9 + 1 / 360)}, 3)
    check("one sample later, one test example better", not claims(text), text)


# ---- what went wrong

def said_first(pages, what, right, bad, seeds=5, of=None):
    """bad: run(seed) of B. A is as ever, and is not compared with the others of B."""
    text = shown(pages, {"A": noisy(random.Random(5)), "B": bad}, seeds)
    check(f"{what}: is said in the first two sentences", re.search(right, first_two(text)), text)
    if of is not None:
        check(f"{what}: the only one that ended well is said alone",
              re.search(r"[.] +A reached accuracy 0.8 after \S+ \[[^]]*\] seconds and ended at accuracy 0\.\d+ \[", text), text)
        rest = text.split("ended well with every seed. ")[-1] if of < seeds else text.split(". ", 1)[1]
        check(f"{what}: nothing is said of its other runs", not claims(rest) and not re.search(r"\bB\b", rest), text)


def went_wrong(pages):
    rng = random.Random(6)
    fast = noisy(rng, 0.2)
    signs = [("its last weights are not finite", lambda: learning(change={"accuracy": None, "loss": None})),
             (r"it ended at accuracy 0.05, worse than a constant prediction \(0.1\)", lambda: learning(change={"accuracy": 0.05, "loss": 1e9})),
             ("training has diverged in epoch 3", lambda: failed("training has diverged in epoch 3", diverged=True))]
    for sign, run in signs:
        for count in (1, 3, 5):
            said_first(pages, f"{count} of 5 diverged", f"^B diverged with {count} of 5 seeds: {sign}",
                       lambda seed: run() if seed <= count else fast(seed), of=count)
    said_first(pages, "1 of 5 failed", "^B failed with 1 of 5 seeds: cannot connect", lambda seed: failed("cannot connect") if seed == 2 else fast(seed), of=1)
    said_first(pages, "failed at its start", "^B failed with 3 of 3 seeds: no such file", lambda seed: failed("no such file"), seeds=3, of=3)
    said_first(pages, "not scored", "^B failed with 5 of 5 seeds: its weights were not scored", lambda seed: {
        **learning(), "samples": [], "error": "its weights were not scored: no sample was taken"}, of=5)
    said_first(pages, "no samples", "^B failed with 5 of 5 seeds: it has no samples of its weights", lambda seed: {**learning(), "samples": []}, of=5)
    said_first(pages, "never reaches", "^B did not reach accuracy 0.8 with any of five seeds; A reached it with all five",
               lambda seed: learning(end=rng.gauss(0.7, 0.01), seconds=1))
    text = shown(pages, {"A": lambda seed: learning(end=0.7), "B": lambda seed: learning(end=0.71)}, 5)
    check("no mode reaches it", text.startswith("No mode reached accuracy 0.8, at one rate for all modes"), text)
    text = shown(pages, {"A": lambda seed: learning(end=0.7), "B": lambda seed: learning(end=0.5)}, 5)
    check("no mode reaches it, and one ends better", re.match(r"No mode reached [^.]*0\.8, [^.]* epochs\. A ended better than B \(accuracy higher by 0\.20", text), text)
    text = shown(pages, {"A": lambda seed: learning(), "B": lambda seed: learning(seconds=3)}, 5, target=0.05)
    check("a target that untrained weights meet", text.startswith("Weights that are not trained meet the target, accuracy 0.05, so"), text)
    for seeds, word in ((1, "one seed"), (2, "two seeds")):
        text = shown(pages, {"A": noisy(rng), "B": noisy(rng, 0.2)}, seeds)
        check(f"{word} show nothing", text.startswith(f"With {word} no difference can be shown") and not ORDER.search(text), text)


def main():
    with tempfile.TemporaryDirectory(prefix="dp_fabricated_") as where:
        pages = Pages(sys.argv[1], where)
        known_effect(pages)
        no_effect(pages, 2, 40, 2)
        no_effect(pages, 5, 20, 1)
        for part in (counts, power_in_percent, reached_by_one, cost, slower, ties, went_wrong):
            part(pages)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
