#!/usr/bin/env python3
"""Plants one fault of each kind in a small tree, in turn. The check must find that fault and no other."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check

GUARD = "#ifndef {0}\n#define {0}\n{1}\n#endif\n"
SOUND = {
    "README.md": "short\n",
    "common/base/low.h": GUARD.format("DP_BASE_LOW_H", "struct low {\n    int a;\n};\nint dp_low_get(void);"),
    "common/base/low.c": '#include "common/base/low.h"\n\nint dp_low_get(void)\n{\n    return 1;\n}\n',
    "server/journal/high.h": GUARD.format("DP_JOURNAL_HIGH_H", "int dp_high_get(void);"),
    "server/journal/high.c": '#include "server/journal/high.h"\n#include "common/base/low.h"\n\n'
    "/* strstr(a, b) in a comment, { too */\nint dp_high_get(void)\n{\n    return dp_low_get();\n}\n",
}


class Planted(unittest.TestCase):
    def found(self, **changes):
        """The findings of the sound tree with these files added or, where a file is there, appended to."""
        with tempfile.TemporaryDirectory() as root:
            files = dict(SOUND)
            for file, text in changes.pop("files", {}).items():
                files[file] = files.get(file, "") + text
            for file, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, file)) or root, exist_ok=True)
                with open(os.path.join(root, file), "w", encoding="utf-8") as out:
                    out.write(text)
            objects = {}
            for file in files:
                if file.endswith(".c"):
                    objects[file] = os.path.join(root, file + ".o")
                    subprocess.run(["cc", "-w", "-c", "-I", root, os.path.join(root, file), "-o", objects[file]], check=True)
            return [(rule, subject) for rule, subject, _, _ in check.findings(check.Tree(root), objects)]

    def test_a_sound_tree_has_no_findings(self):
        self.assertEqual(self.found(), [])

    def test_a_circle_of_headers(self):
        other = GUARD.format("DP_BASE_OTHER_H", '#include "common/base/low.h"')
        files = {"common/base/other.h": other, "common/base/low.h": '#include "common/base/other.h"\n'}
        self.assertEqual(self.found(files=files),
                         [("include-circle", "common/base/low.h"), ("include-circle", "common/base/other.h")])

    def test_a_circle_of_calls(self):
        files = {"common/base/other.c": "int dp_low_get(void);\nint dp_other_get(void)\n{\n    return dp_low_get();\n}\n",
                 "common/base/low.c": "int dp_other_get(void);\nint dp_low_more(void)\n{\n    return dp_other_get();\n}\n"}
        self.assertEqual(self.found(files=files),
                         [("call-circle", "common/base/low.c"), ("call-circle", "common/base/other.c")])

    def test_a_call_upwards(self):
        files = {"common/base/low.c": "int dp_high_more(void);\nint dp_low_more(void)\n{\n    return dp_high_more();\n}\n",
                 "server/journal/more.c": "int dp_high_more(void)\n{\n    return 1;\n}\n"}
        self.assertEqual(self.found(files=files), [("room-edge", "common/base/low.c->server/journal")])

    def test_a_worker_that_includes_the_server(self):
        files = {"worker/loop/step.c": '#include "server/journal/high.h"\n'}
        self.assertEqual(self.found(files=files), [("room-edge", "worker/loop/step.c->server/journal")])

    def test_a_room_without_a_place(self):
        self.assertEqual(self.found(files={"server/attic/old.c": "int dp_old;\n"}), [("room-unlisted", "server/attic")])

    def test_a_header_that_a_room_shares(self):
        files = {f"common/base/user{i}.c": '#include "common/base/low.h"\n' for i in range(check.USERS_MAX)}
        self.assertEqual(self.found(files=files), [("header-users", "common/base/low.h")])

    def test_lengths(self):
        body = "    (void)0;\n" * check.FUNCTION_LINES_MAX
        files = {"common/base/long.c": f"int dp_long_get(void)\n{{\n{body}    return 1;\n}}\n"}
        self.assertEqual(self.found(files=files), [("function-lines", "common/base/long.c:dp_long_get")])

    def test_a_name_that_nothing_has(self):
        files = {"common/base/README.md": "See `low.c`, `dp_low_get`, `lost.c`, dp_low_lost.\n\n| file | what |\n|---|---|\n| low, away | |\n",
                 "common/base/low.h": "/* As base/low.h, and gone.h. */\n"}
        self.assertEqual(sorted(self.found(files=files)),
                         [("stale-name", "common/base/README.md:away"), ("stale-name", "common/base/README.md:dp_low_lost"),
                          ("stale-name", "common/base/README.md:lost.c"), ("stale-name", "common/base/low.h:gone.h")])

    def test_totals(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "common"))
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as out:
                out.write("w" * 121 + "\n| " + "t" * 121 + " |\n    " + "c" * 121 + "\n")
            with open(os.path.join(root, "common", "low.c"), "w", encoding="utf-8") as out:
                out.write("int dp_low;\n// " + "w" * 110 + "\n")
            found = check.Findings()
            check.find_totals(check.Tree(root), {"product": 1, "wide-code": 0, "wide-prose": 1}, found)
            self.assertEqual([(rule, subject, number) for rule, subject, _, number in found.all],
                             [("total", "product", 2), ("total", "wide-code", 1)])

    def test_a_total_that_is_raised_without_a_reason(self):
        with tempfile.TemporaryDirectory() as root:
            for number, message in ((2, "begin"), (1, "smaller"), (3, "larger"), (4, "larger\n\ntotals.txt: a new format")):
                with open(os.path.join(root, "totals.txt"), "w", encoding="utf-8") as out:
                    out.write(f"product {number}  # lines\n")
                for words in (("init", "-q"), ("add", "."), ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", message)):
                    subprocess.run(["git", "-C", root, *words], check=True)
                found = check.Findings()
                check.find_silent_raise(root, "totals.txt", found)
                self.assertEqual([rule for rule, _, _, _ in found.all], ["total-raised"] if number == 3 else [])

    def test_a_tag_and_a_prefix_taken_twice(self):
        files = {"server/journal/twice.c": "struct low {\n    int b;\n};\nint dp_low_twice(void)\n{\n    return 1;\n}\n"}
        self.assertEqual(self.found(files=files), [("tag-twice", "low"), ("prefix-twice", "dp_low_")])

    def test_a_guard_of_another_path(self):
        files = {"server/journal/moved.h": GUARD.format("DP_STORE_MOVED_H", "")}
        self.assertEqual(self.found(files=files), [("guard", "server/journal/moved.h")])

    def test_a_search_in_a_message(self):
        files = {"common/base/low.c": '#include <string.h>\nint dp_low_is(const char *a)\n{\n    return !!strstr(a, "b c");\n}\n'}
        self.assertEqual(self.found(files=files), [("strstr", 'common/base/low.c:"b_c"')])

    def test_a_vendor_outside_its_room(self):
        files = {"common/base/net.h": GUARD.format("DP_BASE_NET_H", "#include <zmq.h>")}
        self.assertEqual(self.found(files=files), [("vendor-wall", "common/base/net.h:zmq.h")])

    def test_the_list_of_allowed_findings_only_shrinks(self):
        allowed = {("header-users", "a.h"): 12, ("strstr", "b.c:x"): None}
        self.assertEqual(check.judge([("header-users", "a.h", "", 12), ("strstr", "b.c:x", "", 0)], allowed), [])
        self.assertRegex(check.judge([("header-users", "a.h", "", 13), ("strstr", "b.c:x", "", 0)], allowed)[0], "grown")
        self.assertRegex(check.judge([("header-users", "a.h", "", 10)], allowed)[0], "mended: strstr")
        self.assertRegex(check.judge([("guard", "c.h", "", 0)], {})[0], "new: guard")


if __name__ == "__main__":
    unittest.main()
