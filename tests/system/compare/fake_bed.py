"""A directory in which `downpour compare` finds fake_programs.py in place of the programs that it starts. The command looks for them
in its own directory, so it is a copy here."""
import json, os, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "data")
JOB = ["--model", "mlp:64-16-10", "--train", os.path.join(DATA, "digits.train.libsvm.gz"),
       "--test", os.path.join(DATA, "digits.test.libsvm.gz")]


class Bed:
    def __init__(self, downpour):
        self.dir = tempfile.mkdtemp(prefix="dp_fake_")
        self.bin, self.failures = self.dir + "/bin", 0
        os.mkdir(self.bin)
        self.command = shutil.copy(downpour, self.bin + "/downpour-copy")
        for name in ("downpour", "mpirun", "downpour-worker", "downpour-allreduce"):
            with open(f"{self.bin}/{name}", "w") as script:
                script.write(f'#!/bin/sh\nexec "{sys.executable}" -B -E -S "{HERE}/fake_programs.py" {name} "$@"\n')
            os.chmod(script.name, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def fail(self, text):
        self.failures += 1
        print("FAILED:", text)

    def check(self, what, got, right):
        if got != right:
            self.fail(f"{what} is {got!r}, not {right!r}")

    def call(self, words, **environment):
        path = self.bin + os.pathsep + os.environ["PATH"]
        return subprocess.run([self.command, *words], capture_output=True, text=True, timeout=250,
                              env={**os.environ, "PATH": path, **environment})

    def try_compare(self, name, flags, but=None):
        """Returns the directory, and how the command ended. but: exceptions of runs."""
        where = f"{self.dir}/{name}"
        with open(where + ".but", "w") as file:
            json.dump(but or {}, file)
        return where, self.call(["compare", "--dir", where, *JOB, *flags], DP_FAKE_RUNS=file.name)

    def compare(self, name, flags, but=None):
        """Returns the directory, its report, and all that was said."""
        where, done = self.try_compare(name, flags, but)
        if done.returncode:
            self.fail(f"compare {name} ended with {done.returncode}: {done.stderr}")
        return where, json.load(open(where + "/report.json")), done.stdout + done.stderr
