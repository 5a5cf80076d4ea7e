"""Files of tensors for `downpour import`: what other programs would write of an export, and what must be refused.
usage: import_files.py weights EXPORT FILE    the weights alone, without metadata, as PyTorch has them (biases are vectors, keys first)
       import_files.py backward EXPORT FILE   the same, the keys of each table from the last to the first
       import_files.py library EXPORT FILE    the same, written by the public library; exit code 77: it is not installed
       import_files.py npy EXPORT DIR         the same as .npy files, of format 2.0, the keys unsigned and from the last to the first
       import_files.py bad EXPORT DIR         files DIR/NAME; prints "NAME<tab>TEXT", what must be said of each
       import_files.py bad_npy EXPORT DIR     directories DIR/NAME of .npy files; prints the same"""
import json
import os
import struct
import sys


def read(path):
    raw = open(path, "rb").read()
    size, = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], raw[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in header.items()}


def pack(tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def weights(tensors):
    kept = {name: t for name, t in tensors.items() if name.split(".")[-1] not in ("step", "m", "v", "padding")}
    return {name: (dtype, shape[1:] if dtype == "F32" and shape[0] == 1 else shape, values)
            for name, (dtype, shape, values) in sorted(kept.items())}


def backward(tensors):
    def turn(values, rows):
        width = len(values) // rows
        return b"".join(values[at:at + width] for at in range(len(values) - width, -1, -width))

    return {name: (dtype, shape, turn(values, shape[0]) if name.endswith((".keys", ".weights")) else values)
            for name, (dtype, shape, values) in tensors.items()}


def bad(tensors, directory):
    keys, table = "mf.item.keys", "mf.item.weights"
    number, rows = tensors[keys][1][0], tensors[table][1]
    f32 = "F32 [%d, %d]" % tuple(rows)

    def with_(name, value):
        return pack({**tensors, name: value})

    def floats(at, value, name=table):
        values = bytearray(tensors[name][2])
        struct.pack_into("<f", values, 4 * at, value)
        return with_(name, ("F32", rows, bytes(values)))

    def ids(change):
        values = list(struct.unpack("<%dq" % number, tensors[keys][2]))
        change(values)
        return with_(keys, ("I64", [number], struct.pack("<%dq" % number, *values)))

    def repeat(values):
        values[4] = values[1]

    def negative(values):
        values[0] = -7

    whole = pack(tensors)
    size, = struct.unpack_from("<Q", whole)
    header = json.loads(whole[8:8 + size])

    def headed(text):
        return struct.pack("<Q", len(text)) + text + whole[8 + size:]

    def placed(begin, end):
        return headed(json.dumps({**header, keys: {**header[keys], "data_offsets": [begin, end]}}).encode())

    without = dict(tensors)
    without.pop("mf.user.weights")
    first = header[keys]["data_offsets"]
    files = {
        "empty": (b"", "begins with 8 for its header's length"),
        "short": (whole[:5], "begins with 8 for its header's length"),
        "text": (b"this is no file of tensors at all", "it is no file of tensors"),
        "huge": (struct.pack("<Q", 2 ** 63) + whole[8:], "at most 100000000 are read"),
        "long": (struct.pack("<Q", len(whole)) + whole[8:], "the file %d: it is cut off" % len(whole)),
        "cut": (whole[:-1], "the file is cut off"),
        "cut_header": (whole[:40], "it is cut off, or no file of tensors"),
        "more": (whole + b"\0", "1 bytes after the last tensor belong to none"),
        "json": (headed(b"{" + b"[" * 100), "its header is no JSON object"),
        "list": (headed(b"[]"), "its header is no JSON object: another value"),
        "twice": (headed(('{"a":0,"a":1}').encode()), "duplicate object key"),
        "nothing": (headed(b'{"mf.item.keys":{}}'), "it has no dtype, shape and data_offsets"),
        "gap": (placed(first[0] + 8, first[1] + 8), "mf.item"),
        "outside": (placed(2 ** 40, 2 ** 40 + 8 * number), "the file is cut off"),
        "backward": (placed(first[1], first[0]), "no two ascending numbers"),
        "size": (placed(first[0], first[1] - 8), "its number of bytes does not fit its shape and type"),
        "overflow": (headed(json.dumps({keys: {"dtype": "I64", "shape": [2 ** 62, 2 ** 62], "data_offsets": [0, 8]}}).encode()),
                     "a number that cannot be"),
        "dtype": (headed(json.dumps({**header, keys: {**header[keys], "dtype": "I65"}}).encode()), "its type 'I65' is unknown"),
        "unknown": (with_("mf.other", ("F32", [1], b"\0\0\0\0")), "tensor 'mf.other' is of no table of the model, which has mf.user"),
        "missing": (pack(without), "the file has no tensor 'mf.user.weights'"),
        "missing_slot": (pack({n: t for n, t in tensors.items() if n != "mf.item.v"}), "the file has no tensor 'mf.item.v'"),
        "shape": (with_(table, ("F32", rows[::-1], tensors[table][2])), "is F32 [%d, %d], and must be %s" % (rows[1], rows[0], f32)),
        "rows": (with_(table, ("F32", [rows[0] - 1, rows[1]], tensors[table][2][:-4 * rows[1]])), "and must be %s" % f32),
        "f64": (with_(table, ("F64", rows, tensors[table][2] * 2)), "is F64 [%d, %d], and must be %s" % (*rows, f32)),
        "i32": (with_(keys, ("I32", [number], tensors[keys][2][:4 * number])), "is I32 [%d], and must be I64" % number),
        "repeated": (ids(repeat), "is there more than once"),
        "negative": (ids(negative), "element 0 is -7, which it cannot be"),
        "nan": (floats(5, float("nan")), "element 5 is not finite"),
        "infinite": (floats(6, float("-inf")), "element 6 is not finite"),
        "squares": (floats(2, -1e-9, "mf.item.v"), "tensor 'mf.item.v': element 2 is negative, and it is a sum of squares"),
        "step": (with_("mf.item.step", ("I64", [number], struct.pack("<q", 2 ** 32) * number)), "element 0 is 4294967296"),
    }
    for name, (data, text) in files.items():
        open("%s/%s" % (directory, name), "wb").write(data)
        print("%s\t%s" % (name, text))


def npy(descr, shape, values, order="False", version=2):
    text = ("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n" % (descr, order, "".join("%d, " % n for n in shape))).encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<I" if version == 2 else "<H", len(text)) + text + values


def npy_files(tensors):
    descr = {"F32": "<f4", "I64": "<u8"}
    return {name.replace(".weights", "") + ".npy": npy(descr[dtype], shape, values)
            for name, (dtype, shape, values) in backward(weights(tensors)).items()}


def write(directory, files):
    os.makedirs(directory, exist_ok=True)
    for name, data in files.items():
        open("%s/%s" % (directory, name), "wb").write(data)


def bad_npy(tensors, directory):
    good = npy_files(tensors)
    (dtype, shape, values), table = tensors["mf.item.weights"], "mf.item.npy"
    keys = tensors["mf.item.keys"]

    def without(name):
        return {file: data for file, data in good.items() if file != name}

    cases = {
        "fortran": ({**good, table: npy("<f4", shape, values, "True")}, "it is in Fortran order"),
        "f64": ({**good, table: npy("<f8", shape, values * 2)}, "a.astype('<f4')"),
        "big": ({**good, table: npy(">f4", shape, values)}, "'>f4', big-endian"),
        "objects": ({**good, table: npy("|O", shape, values)}, "'|O', Python objects"),
        "cut": ({**good, table: good[table][:-1]}, "the file is cut off"),
        "more": ({**good, table: good[table] + b"\0"}, "1 bytes follow its array"),
        "shape": ({**good, table: npy("<f4", shape[::-1], values)}, "and must be F32 [%d, %d]" % tuple(shape)),
        "rows": ({**good, table: npy("<f4", [shape[0] - 1, shape[1]], values[:-4 * shape[1]])}, "and must be F32 [%d, " % shape[0]),
        "i32": ({**good, "mf.item.keys.npy": npy("<i4", keys[1], keys[2][:4 * keys[1][0]])}, "a.astype('<i8')"),
        "float_keys": ({**good, "mf.item.keys.npy": npy("<f4", keys[1], keys[2][:4 * keys[1][0]])}, "and must be I64 [%d]" % keys[1][0]),
        "no_keys": (without("mf.item.keys.npy"), "there is no file 'mf.item.keys.npy', which the model needs"),
        "no_table": (without(table), "there is no file '%s', which the model needs" % table),
        "other": ({**good, "mf.other.npy": npy("<f4", [1], values[:4])}, "tensor 'mf.other' is of no table of the model"),
        "text": ({**good, table: b"this is no .npy file"}, "it is no .npy file"),
        "none": ({"mf.item.names.tsv": b""}, "has no .npy file"),
    }
    for name, (files, text) in cases.items():
        write("%s/%s" % (directory, name), files)
        print("%s\t%s" % (name, text))


what, tensors = sys.argv[1], read(sys.argv[2])
if what == "weights":
    open(sys.argv[3], "wb").write(pack(weights(tensors)))
elif what == "backward":
    open(sys.argv[3], "wb").write(pack(backward(weights(tensors))))
elif what == "library":
    try:
        import numpy
        from safetensors.numpy import load_file, save_file
    except ImportError:
        sys.exit(77)
    tensors = load_file(sys.argv[2])
    save_file({name: tensors[name].reshape(shape) for name, (_, shape, _) in weights(read(sys.argv[2])).items()}, sys.argv[3])
elif what == "npy":
    write(sys.argv[3], npy_files(tensors))
elif what == "bad_npy":
    bad_npy(tensors, sys.argv[3])
else:
    bad(tensors, sys.argv[3])
