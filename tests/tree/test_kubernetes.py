#!/usr/bin/env python3
"""Plants one fault of each kind in a copy of deploy/kubernetes, and expects kubernetes.py to find it."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "deploy", "kubernetes")
FAULTS = [  # what stands there, what replaces it, and words of the finding
    ("replicas: 2", "replicas: 3", "'count' is not 3"),
    ("parallelism: 2", "parallelism: 1", "not all workers run at the same time"),
    ("completionMode: Indexed", "completionMode: Indexd", "spec.completionMode is Indexd"),
    ("port: metrics", "port: metric", "livenessProbe: no port 'metric'"),
    ("containerPort: 5700", "containerPort: 5701", "port control is not the container's"),
    ("claimName: downpour-data", "claimName: data", "no claim data"),
    ("serviceName: downpour-servers", "serviceName: downpour", "'first' is not the first pod's name"),
    ("containers/0/resources", "containers/1/resources", "patch of Job"),
    ("component: worker", "component: server", "selects 2 kinds of pods"),
    ("- name: store\n", "- name: stor\n", "mounts 'stor'"),
    ("name: downpour-cluster\n    behavior", "name: downpour-conf\n    behavior", "behavior replace does not fit"),
    ("  - disruption.yaml", "  - disruptions.yaml", "disruptions.yaml is missing"),
    ("kind: ServiceMonitor", "kind: ServiceMonitr", "kind ServiceMonitr"),
]


def findings(folder):
    run = subprocess.run([sys.executable, os.path.join(HERE, "kubernetes.py"), folder], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def main():
    status, text = findings(SOURCE)
    if status:
        print(text, end="")
        return status
    missed = 0
    for old, new, words in FAULTS:
        with tempfile.TemporaryDirectory() as top:
            folder = shutil.copytree(SOURCE, os.path.join(top, "kubernetes"))
            for path in glob.glob(os.path.join(folder, "*", "*")):
                with open(path, encoding="utf-8") as file:
                    before = file.read()
                with open(path, "w", encoding="utf-8") as file:
                    file.write(before.replace(old, new))
            status, text = findings(folder)
            if status != 1 or words not in text:
                print(f"'{new.strip()}' was not found: {status} {text}")
                missed += 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
