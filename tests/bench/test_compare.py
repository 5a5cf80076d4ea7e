#!/usr/bin/python3
"""compare.py's hidden share against cases that are known beforehand, those of test_bench_train_hidden.c. Needs no PyTorch."""

import compare

KINDS = ("whole", "waiting_pull", "device_copy_in", "device_compute", "device_copy_out", "waiting_device")
CASES = (
    ((10, 2, 4, 10, 3, 9), 1), ((11, 2, 4, 10, 3, 9), 0.75), ((13, 2, 4, 10, 3, 9), 0.25), ((20, 2, 4, 10, 3, 9), 0),
    ((20, 12, 4, 10, 3, 0), 1), ((20, 12, 4, 10, 3, 1), 0.9), ((20, 12, 4, 10, 3, 15), 0), ((30, 1, 2, 10, 20, 4), 0.6),
    ((30, 1, 20, 10, 2, 4), 0.6), ((10, 2, 0, 0, 0, 0), None), ((10, 0, 0, 9, 0, 9), None),
)


def spent_of(case):
    """As a report has it: all that the thread did adds up to the whole."""
    spent = dict(zip(KINDS, case))
    whole = spent.pop("whole")
    pull = spent["waiting_pull"] / 2
    return spent | {"pull": pull, "waiting_pull": pull, "other": whole - 2 * pull - spent["waiting_device"],
                    "waiting": pull + spent["waiting_device"]}


for case, want in CASES:
    got = compare.hidden(spent_of(case))
    assert got == want or (got is not None and want is not None and abs(got - want) < 1e-12), f"{case}: {got}, not {want}"
print(f"{len(CASES)} cases")
