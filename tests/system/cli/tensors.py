"""Reads a file of tensors by its format alone, and compares it with what `downpour inspect --rows --json` and a .npy tell.
usage: tensors.py FILE rows TABLE INSPECTED.json | FILE npy TENSOR FILE.npy | FILE names | FILE library (if it is installed)"""
import json
import struct
import sys

raw = open(sys.argv[1], "rb").read()
size, = struct.unpack_from("<Q", raw)
header = json.loads(raw[8:8 + size])
metadata = header.pop("__metadata__")
tensors, end = {}, 0
for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    kind, (begin, behind) = {"F32": "f", "I64": "q", "U64": "Q"}[t["dtype"]], t["data_offsets"]
    width = struct.calcsize("<" + kind)
    assert size % 8 == 0 and begin == end and begin % width == 0, name
    end, count = behind, 1
    for n in t["shape"]:
        count *= n
    tensors[name] = struct.unpack("<%d%s" % (count, kind), raw[8 + size + begin:8 + size + behind])
assert 8 + size + end == len(raw)
what = sys.argv[2]
if what == "names":
    print(" ".join(sorted(header)))
elif what == "npy":
    assert raw[8 + size + header[sys.argv[3]]["data_offsets"][0]:][:4 * len(tensors[sys.argv[3]])] == \
        open(sys.argv[4], "rb").read()[128:]
elif what == "library":
    try:
        from safetensors import safe_open
    except ImportError:
        sys.exit(0)
    with safe_open(sys.argv[1], "np") as file:
        assert sorted(file.keys()) == sorted(header) and file.metadata() == metadata
        for name in header:
            assert tuple(file.get_tensor(name).ravel().tolist()) == tensors[name], name
else:
    table, rows = sys.argv[3], json.load(open(sys.argv[4]))["rows"]
    keys, close = tensors[table + ".keys"], lambda a, b: abs(a - b) <= 1e-8 * max(1e-30, abs(a))
    assert list(keys) == sorted(set(keys)) and set(keys) == {row["key"] for row in rows} and len(rows) > 0
    for row in rows:
        at = keys.index(row["key"])
        for field, values in row.items():
            if isinstance(values, list):
                told = tensors["%s.%s" % (table, field)][at * len(values):][:len(values)]
                assert all(map(close, told, values)), (row, told)
        assert table + ".step" not in tensors or tensors[table + ".step"][at] == row["step"], row
