"""Compares exports of large tables with the rows that `downpour inspect --rows` shows (DIR/TABLE.rows), bit for bit.
usage: portions.py DIR forms TABLE | DIR best"""
import array
import json
import math
import struct
import sys

directory, what = sys.argv[1:3]


def floats(words):
    return array.array("f", map(float, words)).tobytes()  # %.9g holds every f32


def stored(table):
    rows = {}
    for line in open("%s/%s.rows" % (directory, table)):
        words = line.split()
        if words and words[0] == "key":
            row = rows[int(words[1])] = {"step": struct.pack("<q", int(words[3]))}
        elif words and words[0] in ("weights", "squares"):
            row[words[0]] = floats(words[1:])
    return rows


def npy(name):
    raw = open("%s/%s.npy" % (directory, name), "rb").read()
    return raw[10 + struct.unpack_from("<H", raw, 8)[0]:]


def keys_of(raw):
    return struct.unpack("<%dq" % (len(raw) // 8), raw)


def vectors(table):
    return {key: struct.unpack("<%df" % (len(row["weights"]) // 4), row["weights"])
            for key, row in stored(table).items()}


def best(scores):
    return sorted(scores, key=scores.get, reverse=True)[:20]


def forms(table):
    rows = stored(table)

    def expect(form, keys, field, raw):
        assert len(keys) == len(rows) and set(keys) == set(rows), "%s: %d keys of %d" % (form, len(keys), len(rows))
        width = len(raw) // len(keys)
        for at, key in enumerate(keys):
            assert raw[at * width:(at + 1) * width] == rows[key][field], \
                "%s: row %d, key %d: other %s" % (form, at, key, field)

    def named(name):
        return [int(line.split("\t")[1]) for line in open("%s/%s.names.tsv" % (directory, name))]

    keys = keys_of(npy("npy/%s.keys" % table))
    assert list(keys) == named("npy/" + table)
    for field, name in ("weights", ""), ("squares", ".squares"), ("step", ".step"):
        expect("directory", keys, field, npy("npy/%s%s" % (table, name)))
    expect("matrix", named(table), "weights", npy(table))
    lines = [line.split() for line in open("%s/text/%s.txt" % (directory, table))]
    expect("text", [int(words[0]) for words in lines], "weights", b"".join(floats(words[1:]) for words in lines))
    raw = open("%s/all.safetensors" % directory, "rb").read()
    size, = struct.unpack_from("<Q", raw)
    tensor = {name: raw[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]
              for name, t in json.loads(raw[8:8 + size]).items() if name.startswith(table + ".")}
    for field in "weights", "squares", "step":
        expect("tensors", keys_of(tensor[table + ".keys"]), field, tensor["%s.%s" % (table, field)])


def best_of_all():
    items, users, bias = vectors("mf.item"), vectors("mf.user"), vectors("mf.item_bias")
    for asked in 100000, 589993:
        scores = {key: math.fsum(x * y for x, y in zip(items[asked], v)) / math.sqrt(math.fsum(y * y for y in v))
                  for key, v in items.items() if key != asked}
        told = [int(line.split()[0]) for line in open("%s/neighbours.%d" % (directory, asked))]
        assert told == best(scores), "neighbours of %d: %s" % (asked, told)
    scores = {key: math.fsum(x * y for x, y in zip(users[5], v)) + bias[key][0] for key, v in items.items()}
    told = [int(line.split("\t")[1]) for line in open(directory + "/best.5")]
    assert told == best(scores), "best of user 5: %s" % told


if what == "forms":
    forms(sys.argv[3])
else:
    best_of_all()
