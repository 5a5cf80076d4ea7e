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


def _libsvm(path):
    if not shutil.which("zstd"):
        raise FileNotFoundError("the program zstd (apt-get install zstd)")
    text = subprocess.run(["zstd", "-dc", str(path)], stdout=subprocess.PIPE, check=True).stdout
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
