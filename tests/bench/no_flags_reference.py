#!/usr/bin/env python3
"""What scikit-learn's LogisticRegression (its own defaults, until it has converged) reaches: the numbers of
tests/system/test_no_flags.c. Needs scikit-learn; numbers of a CSV are standardized, texts are one column each.

    no_flags_reference.py libsvm TRAIN TEST
    no_flags_reference.py csv TRAIN TEST        the label is the last column"""

import csv
import sys

import numpy as np
from sklearn.datasets import load_svmlight_files
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score


def cells(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))[1:]


def columns(rows, like):
    """Features of rows, by the means, deviations and texts of the rows of the training file."""
    out = []
    for c in range(len(like[0]) - 1):
        try:
            numbers = np.array([float(r[c]) for r in like])
            out.append((np.array([float(r[c]) for r in rows]) - numbers.mean()) / numbers.std())
        except ValueError:
            out += [np.array([r[c] == text for r in rows], float) for text in sorted({r[c] for r in like})]
    return np.stack(out, 1), np.array([int(r[-1]) for r in rows])


form, train, test = sys.argv[1:]
if form == "csv":
    rows = cells(train)
    (x, y), (x_test, y_test) = columns(rows, rows), columns(cells(test), rows)
else:
    x, y, x_test, y_test = load_svmlight_files((train, test))
model = LogisticRegression(max_iter=5000, tol=1e-6).fit(x, y)
print("accuracy %.4f" % accuracy_score(y_test, model.predict(x_test)))
if len(model.classes_) == 2:
    print("AUC %.4f" % roc_auc_score(y_test, model.decision_function(x_test)))
