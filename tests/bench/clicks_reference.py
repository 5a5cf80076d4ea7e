#!/usr/bin/env python3
"""Logistic regression on a file of Criteo's form in one process, until it has converged: what a distributed one is compared
with. The same features as Downpour's model `logistic`: sign(x) log(1 + |x|) of each integer that is there, and one weight for
each category of each column, an empty one included; and a bias.

    clicks_reference.py TRAIN TEST [--l2 X,X,...]      e.g. files of `downpour generate clicks`

Minimises mean logloss + l2 / 2 * |w|^2 (not of the bias) by L-BFGS with numpy alone, each weight in units of its own curvature, from the largest l2 to the smallest, each
start being the end of the one before, until the gradient is below 1e-4 times its first length or a step gains less than 1e-7. Prints, for each l2, the logloss and AUC
of both files as JSON lines, and last the best of them on TEST: a choice that favours the reference, as it looks at TEST."""

import argparse
import json
import sys
import zlib

import numpy as np

INTEGERS, CATEGORIES = 13, 26
BITS = 24  # keys of (column, text), hashed


def read(path):
    """labels [n], columns [n, 13], keys [n, 26]"""
    labels, columns, keys = [], [], []
    with open(path, "rb") as file:
        for line in file:
            cells = line.rstrip(b"\r\n").split(b"\t")
            labels.append(cells[0] == b"1")
            columns.append([float(c) if c else 0.0 for c in cells[1:14]])
            keys.append([zlib.crc32(c, i * 2654435761 & 0xFFFFFFFF) for i, c in enumerate(cells[14:40])])
    x = np.array(columns, np.float32)
    return (np.array(labels, np.float32), np.sign(x) * np.log1p(np.abs(x)),
            (np.array(keys, np.uint32) & ((1 << BITS) - 1)).astype(np.int32))


class Problem:
    """The weights of distinct keys of the training file, then of columns, then the bias. Keys that only TEST has weigh 0."""

    def __init__(self, data, known=None):
        self.labels, self.columns, keys = data
        self.known = np.unique(keys) if known is None else known
        at = np.searchsorted(self.known, keys)
        found = (at < len(self.known)) & (self.known[np.minimum(at, len(self.known) - 1)] == keys)
        at = np.where(found, at, len(self.known)).astype(np.int32)  # the place behind the last is 0
        self.at = np.ascontiguousarray(at.T)
        self.size = len(self.known) + INTEGERS + 1
        counts = sum(np.bincount(column, minlength=len(self.known) + 1)[:-1] for column in self.at)
        squares = np.concatenate([counts, np.square(self.columns, dtype=np.float64).sum(0), [len(keys)]])
        self.curvature = 0.18 * squares / len(keys)  # p (1 - p) is about 0.18

    def logits(self, w):
        table = np.append(w[:len(self.known)], 0).astype(np.float32)
        z = self.columns @ w[len(self.known):-1].astype(np.float32) + np.float32(w[-1])
        for i in range(CATEGORIES):
            z += table[self.at[i]]
        return z.astype(np.float64)

    def loss(self, w, l2):
        """And its gradient."""
        z, n = self.logits(w), len(self.labels)
        value = np.mean(np.logaddexp(0, z) - self.labels * z)
        off = (1 / (1 + np.exp(-z)) - self.labels) / n
        gradient = np.zeros(self.size + 1)
        sums = np.zeros(len(self.known) + 1)
        for i in range(CATEGORIES):
            sums += np.bincount(self.at[i], weights=off, minlength=len(sums))
        gradient = np.concatenate([sums[:-1], self.columns.T.astype(np.float64) @ off, [off.sum()]])
        penalised = w.copy()
        penalised[-1] = 0
        return value + l2 / 2 * penalised @ penalised, gradient + l2 * penalised


def auc(z, labels):
    order = np.argsort(z, kind="stable")
    values, inverse, counts = np.unique(z[order], return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # ties share their mean rank
    ones = labels[order] == 1
    positives = ones.sum()
    return float((ranks[inverse][ones].sum() - positives * (positives + 1) / 2) /
                 (positives * (len(z) - positives)))


def lbfgs(f, w, first_length, memory=20, steps=500):
    """Nocedal and Wright, Numerical Optimization, algorithms 7.4 and 7.5, with halving until Armijo's condition holds."""
    value, gradient = f(w)
    pairs = []
    for step in range(steps):
        length = np.linalg.norm(gradient)
        first_length = first_length or length
        if length < 1e-4 * first_length:
            break
        direction, alphas = -gradient, []
        for s, y, rho in reversed(pairs):
            alphas.append(rho * (s @ direction))
            direction = direction - alphas[-1] * y
        if pairs:
            s, y, rho = pairs[-1]
            direction = direction * ((s @ y) / (y @ y))
        else:
            direction = direction / length
        for (s, y, rho), alpha in zip(pairs, reversed(alphas)):
            direction = direction + (alpha - rho * (y @ direction)) * s
        rate, slope = 1.0, gradient @ direction
        while True:
            next_w = w + rate * direction
            next_value, next_gradient = f(next_w)
            if next_value <= value + 1e-4 * rate * slope or rate < 1e-8:
                break
            rate /= 2
        s, y = next_w - w, next_gradient - gradient
        if s @ y > 1e-16:
            pairs = (pairs + [(s, y, 1 / (s @ y))])[-memory:]
        done = value - next_value < 1e-7
        w, value, gradient = next_w, next_value, next_gradient
        print(f"step {step}: {value:.7f}", file=sys.stderr, flush=True)
        if done:
            break
    return w, step, float(np.linalg.norm(gradient)), float(first_length)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--l2", default="5e-5,2e-5,1e-5,5e-6", help="tried, largest first")
    flags = parser.parse_args()
    train = Problem(read(flags.train))
    test = Problem(read(flags.test), train.known)
    w, first_length, best = np.zeros(train.size), None, None
    for l2 in sorted((float(x) for x in flags.l2.split(",")), reverse=True):
        scale = 1 / np.sqrt(l2 + train.curvature)  # in these units all directions are about equally curved

        def scaled(v):
            value, gradient = train.loss(v * scale, l2)
            return value, gradient * scale

        v, steps, length, first_length = lbfgs(scaled, w / scale, first_length)
        w = v * scale
        row = {"l2": l2, "steps": steps, "gradient": length / first_length, "weights": train.size}
        for name, problem in (("train", train), ("test", test)):
            z = problem.logits(w)
            row[name] = {"logloss": float(np.mean(np.logaddexp(0, z) - problem.labels * z)),
                         "auc": auc(z, problem.labels)}
        print(json.dumps(row), flush=True)
        if not best or row["test"]["logloss"] < best["test"]["logloss"]:
            best = row
    print(json.dumps({"best": best}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
