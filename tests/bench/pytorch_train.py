"""The PyTorch side of compare.py: trains one model in one process with one thread and prints, as JSON, the seconds of
each epoch. Timed: shuffling, cutting minibatches, forward, backward, optimizer. Not timed: reading the data, evaluation,
and one epoch before the others that warms up, as on Downpour's side.

    pytorch_train.py mlp|imdb|mf|dlrm ARRAYS.npz EPOCHS [--device cpu|cuda] [--tf32]

On a GPU the steps' forward and backward passes, without the optimizer, are timed by the card's own clock too: up to one
gradient a row, so sparse gradients are coalesced in that time, as Downpour's backward pass sums them."""

import argparse
import json
import time

import numpy as np
import torch
from torch import nn


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

    def epoch(self):
        order = torch.randperm(len(self.labels))
        for picked in order.split(self.batch):
            yield self.loss(self.model(self.images[picked]), self.labels[picked])

    def quality(self, test):
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

    def epoch(self):
        order = torch.randperm(len(self.labels))
        lengths = (self.starts[1:] - self.starts[:-1])[order]
        ends = lengths.cumsum(0)
        begins = torch.cat([torch.zeros(1, dtype=torch.int64), ends])
        shift = torch.repeat_interleave(self.starts[:-1][order] - begins[:-1], lengths)
        at = shift + torch.arange(len(shift))
        columns, values, labels = self.columns[at], self.values[at], self.labels[order]
        for first in range(0, len(order), self.batch):
            last = min(first + self.batch, len(order))
            a, b = int(begins[first]), int(begins[last])
            scores = self.bag(columns[a:b], begins[first:last + 1] - a, values[a:b]).squeeze(1) + self.bias
            yield self.loss(scores, labels[first:last])

    def quality(self, test):
        columns = torch.from_numpy(test["columns"])
        known = columns < self.width
        scores = self.bag(columns.clamp(max=self.width - 1), torch.from_numpy(test["starts"]),
                          torch.from_numpy(test["values"]) * known).squeeze(1) + self.bias
        return float(((scores > 0).float() == torch.from_numpy(test["labels"])).float().mean())


class Mf:
    """Matrix factorisation, 16 factors, biases, logistic loss, batch 1,024, 4 sampled negatives for each pair: sparse
    embeddings and SparseAdam. The negatives of an epoch are drawn at once, vectorised, among what the user did not meet
    (a bitmap of all pairs tells); the time that this takes is told apart, and is not in the seconds."""

    batch, negatives = 1024, 4

    def __init__(self, arrays):
        pairs = arrays["pairs"]
        self.users, self.items = int(pairs[:, 0].max()) + 1, int(pairs[:, 1].max()) + 1
        self.pairs = pairs
        place = pairs[:, 0] * self.items + pairs[:, 1]
        self.met = np.zeros(self.users * self.items // 8 + 1, np.uint8)
        np.bitwise_or.at(self.met, place >> 3, (1 << (place & 7)).astype(np.uint8))
        self.draw = np.random.default_rng(1)
        self.sampling = 0.0

    def examples(self):
        return len(self.pairs) * (1 + self.negatives)

    def build(self):
        torch.manual_seed(1)
        self.p = nn.Embedding(self.users, 16, sparse=True)
        self.q = nn.Embedding(self.items, 16, sparse=True)
        self.a = nn.Embedding(self.users, 1, sparse=True)
        self.b = nn.Embedding(self.items, 1, sparse=True)
        self.bias = nn.Parameter(torch.zeros(1))
        for table, deviation in ((self.p, 0.1), (self.q, 0.1), (self.a, 0), (self.b, 0)):
            nn.init.normal_(table.weight, 0, deviation)
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizers = [torch.optim.SparseAdam([t.weight for t in (self.p, self.q, self.a, self.b)], lr=0.002),
                           torch.optim.Adam([self.bias], lr=0.002)]

    def score(self, user, item):
        return (self.p(user) * self.q(item)).sum(-1) + self.a(user).squeeze(-1) + self.b(item).squeeze(-1) + self.bias

    def sample(self, users):
        items = self.draw.integers(0, self.items, len(users))
        again = np.arange(len(users))
        while len(again):
            place = users[again] * self.items + items[again]
            again = again[(self.met[place >> 3] >> (place & 7).astype(np.uint8) & 1).astype(bool)]
            items[again] = self.draw.integers(0, self.items, len(again))
        return items

    def epoch(self):
        begun = time.perf_counter()
        repeated = np.repeat(self.pairs[:, 0], self.negatives)
        user = torch.from_numpy(np.concatenate([self.pairs[:, 0], repeated]))
        item = torch.from_numpy(np.concatenate([self.pairs[:, 1], self.sample(repeated)]))
        label = torch.zeros(len(user))
        label[:len(self.pairs)] = 1
        self.sampling += time.perf_counter() - begun
        order = torch.randperm(len(user))
        user, item, label = user[order], item[order], label[order]
        for first in range(0, len(user), self.batch):
            last = first + self.batch
            yield self.loss(self.score(user[first:last], item[first:last]), label[first:last])

    def quality(self, test):
        """HR@10: the item held out ranks below all that have its score."""
        user = torch.from_numpy(test["pairs"][:, :1])
        scores = self.score(user, torch.from_numpy(np.concatenate([test["pairs"][:, 1:], test["negatives"]], 1)))
        return float(((scores[:, 1:] >= scores[:, :1]).sum(1) < 10).float().mean())


class Dlrm:
    """DLRM: 26 sparse tables of width 64 with SparseAdam, layers 13-512-256-64 and 415-512-256-1 with Adam, batch 8,192.
    All data are on the device before the first step."""

    batch, dim = 8192, 64

    def __init__(self, arrays, device):
        self.device = device
        self.ids = torch.from_numpy(arrays["ids"]).to(device)
        self.columns = torch.from_numpy(arrays["columns"]).to(device)
        self.labels = torch.from_numpy(arrays["labels"]).to(device)
        self.sizes = arrays["sizes"]
        self.spans = []

    def examples(self):
        return len(self.labels)

    @staticmethod
    def layers(*widths):
        parts = []
        for a, b in zip(widths, widths[1:]):
            parts += [nn.Linear(a, b), nn.ReLU()]
        return parts

    def build(self):
        torch.manual_seed(1)
        fields = len(self.sizes)
        self.tables = nn.ModuleList(nn.Embedding(int(n), self.dim, sparse=True) for n in self.sizes).to(self.device)
        for table in self.tables:
            nn.init.normal_(table.weight, 0, 0.05)
        self.bottom = nn.Sequential(*self.layers(self.columns.shape[1], 512, 256, self.dim)).to(self.device)
        inputs = self.dim + fields * (fields + 1) // 2
        self.top = nn.Sequential(*self.layers(inputs, 512, 256), nn.Linear(256, 1)).to(self.device)
        self.upper = torch.triu_indices(fields + 1, fields + 1, 1, device=self.device)
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizers = [torch.optim.SparseAdam(list(self.tables.parameters()), lr=0.001),
                           torch.optim.Adam([*self.bottom.parameters(), *self.top.parameters()], lr=0.001)]
        self.spans = []

    def epoch(self):
        order = torch.randperm(len(self.labels), device=self.device)
        for first in range(0, len(order), self.batch):
            picked = order[first:first + self.batch]
            ids, columns, labels = self.ids[picked], self.columns[picked], self.labels[picked]
            self.begin()
            x = self.bottom(columns)
            vectors = torch.stack([x, *(table(ids[:, f]) for f, table in enumerate(self.tables))], 1)
            pairs = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.upper[0], self.upper[1]]
            yield self.loss(self.top(torch.cat([x, pairs], 1)).squeeze(1), labels)

    def begin(self):
        if self.device == "cuda":
            self.spans.append([torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)])
            self.spans[-1][0].record()

    def computed(self):
        for table in self.tables:  # SparseAdam would do it in its step
            table.weight.grad = table.weight.grad.coalesce()
        if self.device == "cuda":
            self.spans[-1][1].record()

    def compute_seconds(self):
        return sum(a.elapsed_time(b) for a, b in self.spans) / 1000

    def quality(self, _test):
        return float("nan")


def train_epoch(task):
    for loss in task.epoch():
        for optimizer in task.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if hasattr(task, "computed"):
            task.computed()
        for optimizer in task.optimizers:
            optimizer.step()


def train(task, epochs, synchronize):
    """Seconds of each epoch, processor seconds and computing seconds of all, without those of the first epoch, which warms up."""
    seconds, cpu, warm = [], 0, 0.0
    for epoch in range(epochs + 1):
        if epoch == 1:
            cpu, warm = time.process_time(), compute_seconds(task)
        begun, sampling = time.perf_counter(), getattr(task, "sampling", 0.0)
        train_epoch(task)
        synchronize()
        if epoch:
            seconds.append(time.perf_counter() - begun - (getattr(task, "sampling", 0.0) - sampling))
    return seconds, time.process_time() - cpu, compute_seconds(task) - warm


def compute_seconds(task):
    return task.compute_seconds() if hasattr(task, "compute_seconds") else 0.0


def part(arrays, name):
    return {k[len(name):]: arrays[k] for k in arrays.files if k.startswith(name)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("mlp", "imdb", "mf", "dlrm"))
    parser.add_argument("arrays")
    parser.add_argument("epochs", type=int)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--tf32", action="store_true", help="products of 10 bits of mantissa, as --precision tf32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    arrays = np.load(options.arrays)
    own = (options.device,) if options.task == "dlrm" else ()
    task = {"mlp": Mlp, "imdb": Imdb, "mf": Mf, "dlrm": Dlrm}[options.task](part(arrays, "train_"), *own)
    on_gpu = options.device == "cuda"
    task.build()
    seconds, cpu, compute = train(task, options.epochs, torch.cuda.synchronize if on_gpu else lambda: None)
    with torch.no_grad():
        quality = task.quality(part(arrays, "test_"))
    print(json.dumps({"examples": task.examples(), "seconds": seconds, "sampling": getattr(task, "sampling", 0.0), "cpu": cpu,
                      "quality": quality, "compute": compute if on_gpu else None, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
