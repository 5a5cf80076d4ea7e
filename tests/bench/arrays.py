"""The data sets as numpy arrays in one .npz, so that no run of the bench parses text or unpacks again."""

import gzip
import shutil
import subprocess

import numpy as np


def _idx(path):
    with gzip.open(path) as f:
        raw = f.read()
    dims = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(dims)


def mnist(data, out):
    arrays = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        arrays[part + "_images"] = _idx(data / f"mnist.{name}-images-idx3-ubyte.gz").reshape(-1, 784)
        arrays[part + "_labels"] = _idx(data / f"mnist.{name}-labels-idx1-ubyte.gz")
    np.savez(out, **arrays)


def _unpacked(path):
    if not shutil.which("zstd"):
        raise FileNotFoundError("the program zstd (apt-get install zstd)")
    return subprocess.run(["zstd", "-dc", str(path)], stdout=subprocess.PIPE, check=True).stdout


def _libsvm(path):
    text = _unpacked(path)
    starts, labels, numbers = [0], [], []
    for line in text.splitlines():
        label, _, rest = line.partition(b" ")
        labels.append(float(label) > 0)
        numbers.append(np.array(rest.replace(b":", b" ").split(), np.float64).reshape(-1, 2))
        starts.append(starts[-1] + len(numbers[-1]))
    flat = np.concatenate(numbers)
    return {"starts": np.array(starts, np.int64), "labels": np.array(labels, np.float32),
            "columns": flat[:, 0].astype(np.int64) - 1, "values": flat[:, 1].astype(np.float32)}


def imdb(data, out):
    arrays = {}
    for part in ("train", "test"):
        for key, value in _libsvm(data / f"imdb_bow.{part}.libsvm.zst").items():
            arrays[f"{part}_{key}"] = value
    np.savez(out, **arrays)


def _pairs(path):
    """The first two numbers of each line: user, item."""
    lines = _unpacked(path).splitlines()
    return np.array([line.split()[:2] for line in lines], np.int64)


def gowalla(data, out):
    lists = _unpacked(data / "gowalla.ncf.test.negative.zst").splitlines()
    np.savez(out, train_pairs=_pairs(data / "gowalla.ncf.train.pairs.zst"),
             test_pairs=_pairs(data / "gowalla.ncf.test.rating.zst"),
             test_negatives=np.array([line.split(b"\t")[1:] for line in lists], np.int64))


CLICK_FIELDS, CLICK_COLUMNS = 26, 13


def clicks(folder, out, rows):
    """Rows in Criteo's format, as text for Downpour (folder / clicks.tsv) and the same as arrays: 26 categories by
    Zipf's law, 100 to 100,000 of each kind, 13 integers. Its labels say little: it is for the time of a step."""
    text = folder / "clicks.tsv"
    draw = np.random.default_rng(1)
    sizes = np.geomspace(100, 100000, CLICK_FIELDS).astype(np.int64)
    ids = np.stack([(draw.zipf(1.05, rows) - 1) % size for size in sizes], 1)
    integers = draw.geometric(0.05, (rows, CLICK_COLUMNS)) - 1
    labels = (draw.random(rows) < 0.2 + 0.1 * (ids[:, 0] % 3)).astype(np.int64)
    with open(text, "w") as file:
        for label, row, cells in zip(labels.tolist(), integers.tolist(), ids.tolist()):
            file.write("\t".join([str(label), *map(str, row), *map("{:x}".format, cells)]) + "\n")
    np.savez(out, train_ids=ids, train_columns=np.log1p(integers).astype(np.float32),
             train_labels=labels.astype(np.float32), train_sizes=sizes)
