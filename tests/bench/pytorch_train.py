"""The PyTorch side of compare.py: trains one model in one process with one thread and prints, as JSON, the seconds of
each epoch. Timed: shuffling, cutting minibatches, forward, backward, optimizer. Not timed: reading the data, evaluation,
and a warm-up on a model that is thrown away.

    pytorch_train.py mlp|imdb ARRAYS.npz EPOCHS"""

import json
import sys
import time

import numpy as np
import torch
from torch import nn

WARM_UP_STEPS = 30


class Mlp:
    """784-256-128-10, batch 128, Adam 0.001: the data are two tensors, an epoch's minibatches are rows of them."""

    batch = 128

    def __init__(self, arrays):
        self.images = torch.from_numpy(arrays["images"].astype(np.float32) / 255)
        self.labels = torch.from_numpy(arrays["labels"].astype(np.int64))

    def examples(self):
        return len(self.labels)

    def build(self):
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
        self.loss = nn.CrossEntropyLoss()
        self.optimizers = [torch.optim.Adam(self.model.parameters(), lr=0.001)]

    def epoch(self, steps):
        order = torch.randperm(len(self.labels))
        for picked in order.split(self.batch)[:steps]:
            yield self.loss(self.model(self.images[picked]), self.labels[picked])

    def accuracy(self, test):
        right = self.model(torch.from_numpy(test["images"].astype(np.float32) / 255)).argmax(1).numpy() == test["labels"]
        return float(right.mean())


class Imdb:
    """Logistic regression, batch 64: EmbeddingBag(1, sum, per_sample_weights, sparse) and SparseAdam. The rows of an
    epoch are put in its order at once, vectorised; a minibatch is then a slice."""

    batch = 64

    def __init__(self, arrays):
        self.starts = torch.from_numpy(arrays["starts"])
        self.columns = torch.from_numpy(arrays["columns"])
        self.values = torch.from_numpy(arrays["values"])
        self.labels = torch.from_numpy(arrays["labels"])
        self.width = int(arrays["columns"].max()) + 1

    def examples(self):
        return len(self.labels)

    def build(self):
        torch.manual_seed(1)
        self.bag = nn.EmbeddingBag(self.width, 1, mode="sum", sparse=True, include_last_offset=True)
        nn.init.zeros_(self.bag.weight)
        self.bias = nn.Parameter(torch.zeros(1))
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizers = [torch.optim.SparseAdam(list(self.bag.parameters()), lr=0.001),
                           torch.optim.Adam([self.bias], lr=0.001)]

    def epoch(self, steps):
        order = torch.randperm(len(self.labels))
        lengths = (self.starts[1:] - self.starts[:-1])[order]
        ends = lengths.cumsum(0)
        begins = torch.cat([torch.zeros(1, dtype=torch.int64), ends])
        shift = torch.repeat_interleave(self.starts[:-1][order] - begins[:-1], lengths)
        at = shift + torch.arange(len(shift))
        columns, values, labels = self.columns[at], self.values[at], self.labels[order]
        for first in range(0, len(order), self.batch)[:steps]:
            last = min(first + self.batch, len(order))
            a, b = int(begins[first]), int(begins[last])
            scores = self.bag(columns[a:b], begins[first:last + 1] - a, values[a:b]).squeeze(1) + self.bias
            yield self.loss(scores, labels[first:last])

    def accuracy(self, test):
        columns = torch.from_numpy(test["columns"])
        known = columns < self.width
        scores = self.bag(columns.clamp(max=self.width - 1), torch.from_numpy(test["starts"]),
                          torch.from_numpy(test["values"]) * known).squeeze(1) + self.bias
        return float(((scores > 0).float() == torch.from_numpy(test["labels"])).float().mean())


def train_epoch(task, steps=None):
    for loss in task.epoch(steps):
        for optimizer in task.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in task.optimizers:
            optimizer.step()


def main():
    name, path, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    arrays = np.load(path)
    task = {"mlp": Mlp, "imdb": Imdb}[name]({k[6:]: arrays[k] for k in arrays.files if k.startswith("train_")})
    task.build()
    train_epoch(task, WARM_UP_STEPS)
    task.build()
    seconds = []
    for _ in range(epochs):
        begun = time.perf_counter()
        train_epoch(task)
        seconds.append(time.perf_counter() - begun)
    with torch.no_grad():
        accuracy = task.accuracy({k[5:]: arrays[k] for k in arrays.files if k.startswith("test_")})
    print(json.dumps({"examples": task.examples(), "seconds": seconds, "accuracy": accuracy, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
