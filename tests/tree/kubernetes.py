#!/usr/bin/env python3
"""Checks deploy/kubernetes: what a schema does not see. Combines each kustomization as kustomize does, as far as ours use it.

    tests/tree/kubernetes.py [DIR]      DIR: deploy/kubernetes of this checkout

Each finding is one line `kustomization: object: finding`."""
import os
import re
import sys

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is missing (deploy/install --tests installs it)")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHOICES = {  # of fields whose values a schema leaves open, by their path
    "spec.completionMode": {"Indexed"},
    "spec.podManagementPolicy": {"Parallel"},
    "spec.template.spec.restartPolicy": {"Never", "Always", "OnFailure"},
    "spec.podFailurePolicy.rules.action": {"Ignore", "FailJob", "FailIndex", "Count"},
    "spec.podFailurePolicy.rules.onExitCodes.operator": {"In", "NotIn"},
    "spec.accessModes": {"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"},
    "spec.template.spec.topologySpreadConstraints.whenUnsatisfiable": {"ScheduleAnyway", "DoNotSchedule"},
}
KINDS = {
    ("v1", "Service"), ("v1", "PersistentVolumeClaim"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"),
    ("policy/v1", "PodDisruptionBudget"), ("monitoring.coreos.com/v1", "ServiceMonitor"),
}
FIELDS = {"apiVersion", "kind", "resources", "components", "patches", "configMapGenerator", "images"}
MONITOR_FIELDS = {"selector", "endpoints"}


class Findings(list):
    def add(self, where, text):
        self.append(f"{where}: {text}")


def load(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def patch(target, operation):
    """One operation of a JSON patch (RFC 6902); only `add` is used."""
    if operation["op"] != "add":
        raise ValueError(f"operation {operation['op']}")
    *steps, last = [s.replace("~1", "/").replace("~0", "~") for s in operation["path"].split("/")[1:]]
    for step in steps:
        target = target[int(step)] if isinstance(target, list) else target[step]
    if isinstance(target, list):
        target.append(operation["value"]) if last == "-" else target.insert(int(last), operation["value"])
    else:
        target[last] = operation["value"]


def combine(folder, found):
    """The objects of a kustomization, by kind and name, and the files of its config maps."""
    (head,) = load(os.path.join(folder, "kustomization.yaml"))
    name = os.path.basename(folder)
    for field in sorted(set(head) - FIELDS):
        found.add(name, f"kustomization field '{field}' is not one that this check combines")
    objects, files = {}, {}
    for entry in head.get("resources", []) + head.get("components", []):
        path = os.path.normpath(os.path.join(folder, entry))
        if not os.path.exists(path):
            found.add(name, f"{entry} is missing")
        elif os.path.isdir(path):
            below, its_files = combine(path, found)
            objects.update(below)
            files.update(its_files)
        else:
            objects.update({(o["kind"], o["metadata"]["name"]): o for o in load(path)})
    for made in head.get("configMapGenerator", []):
        if (made.get("behavior", "create") == "create") == (made["name"] in files):
            found.add(name, f"config map {made['name']}: behavior {made.get('behavior', 'create')} does not fit")
        files[made["name"]] = {f: os.path.join(folder, f) for f in made["files"]}
    for change in head.get("patches", []):
        target = objects.get((change["target"]["kind"], change["target"]["name"]))
        try:
            for operation in yaml.safe_load(change["patch"]):
                patch(target, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            found.add(name, f"patch of {change['target']['kind']}: {error!r}")
    return objects, files


def values(node, path):
    """What stands at a path of names, in all items of lists on the way."""
    nodes = [node]
    for step in path.split("."):
        flat = [item for n in nodes for item in (n if isinstance(n, list) else [n])]
        nodes = [n[step] for n in flat if isinstance(n, dict) and step in n]
    return [item for n in nodes for item in (n if isinstance(n, list) else [n])]


def pods(objects):
    return {key: o["spec"]["template"] for key, o in objects.items() if "template" in o["spec"]}


def selects(selector, labels):
    return selector and all(labels.get(k) == v for k, v in selector.items())


def check_selectors(name, objects, found):
    labels = [t["metadata"]["labels"] for t in pods(objects).values()]
    for (kind, at), o in objects.items():
        where = f"{name}: {kind} {at}"
        selector = o["spec"].get("selector")
        if kind == "ServiceMonitor":
            services = [s["metadata"].get("labels", {}) for (k, _), s in objects.items() if k == "Service"]
            if services and not any(selects(selector["matchLabels"], s) for s in services):
                found.add(where, "selects no service")
        elif kind == "Service" or selector:
            wanted = selector if kind == "Service" else selector["matchLabels"]
            hits = sum(bool(selects(wanted, l)) for l in labels)
            if hits != 1:
                found.add(where, f"selects {hits} kinds of pods, not 1")
        if kind == "StatefulSet" and not selects(selector["matchLabels"], o["spec"]["template"]["metadata"]["labels"]):
            found.add(where, "does not select its own pods")


def check_pods(name, objects, files, found):
    claims = {at for (kind, at) in objects if kind == "PersistentVolumeClaim"}
    for (kind, at), template in pods(objects).items():
        where, spec = f"{name}: {kind} {at}", template["spec"]
        made = {c["metadata"]["name"] for c in objects[kind, at]["spec"].get("volumeClaimTemplates", [])}
        volumes = {v["name"] for v in spec.get("volumes", [])} | made
        for volume in spec.get("volumes", []):
            if volume.get("configMap", {}).get("name", "downpour-cluster") not in files:
                found.add(where, f"volume {volume['name']}: no such config map")
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and claim not in claims:
                found.add(where, f"volume {volume['name']}: no claim {claim}")
        for container in spec["containers"]:
            ports = {p["name"] for p in container.get("ports", [])}
            for mount in container["volumeMounts"]:
                if mount["name"] not in volumes:
                    found.add(where, f"mounts '{mount['name']}', which is no volume of the pod")
            for probe in ("livenessProbe", "readinessProbe"):
                port = container.get(probe, {}).get("httpGet", {}).get("port")
                if port is not None and port not in ports:
                    found.add(where, f"{probe}: no port '{port}'")
            memory = [values(container["resources"], f"{k}.memory") for k in ("requests", "limits")]
            if not all(re.fullmatch(r"[1-9][0-9]*(Mi|Gi)", m[0]) for m in memory if m):
                found.add(where, f"memory {memory}")


def check_ports(name, objects, conf, found):
    """The ports of services, monitors and the cluster file are ports of the servers' container."""
    container = objects["StatefulSet", "downpour-servers"]["spec"]["template"]["spec"]["containers"][0]
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    for (kind, at), o in objects.items():
        for port in o["spec"].get("ports", []) if kind == "Service" else []:
            if ports.get(port["targetPort"]) != port["port"]:
                found.add(f"{name}: {kind} {at}", f"port {port['name']} is not the container's")
        for port in values(o["spec"], "endpoints.port") if kind == "ServiceMonitor" else []:
            if port not in ports:
                found.add(f"{name}: {kind} {at}", f"no port '{port}'")
    for key, port in (("first", ports["control"]), ("metrics", ports["metrics"])):
        said = re.search(rf'^{key} = "(.*):([0-9]+)";', conf, re.M)
        if not said or int(said[2]) != port:
            found.add(f"{name}: cluster.conf", f"'{key}' does not have the container's port {port}")
    first = re.search(r'^first = "([^:]*)', conf, re.M)
    service = objects["StatefulSet", "downpour-servers"]["spec"]["serviceName"]
    if not first or first[1] != f"downpour-servers-0.{service}" or ("Service", service) not in objects:
        found.add(f"{name}: cluster.conf", "'first' is not the first pod's name")


def check_counts(name, objects, conf, found):
    servers, workers = objects["StatefulSet", "downpour-servers"]["spec"], objects["Job", "downpour-workers"]["spec"]
    for key, count in (("count", servers["replicas"]), ("workers", workers["completions"])):
        said = re.search(rf"\b{key} = ([0-9]+);", conf)
        if not said or int(said[1]) != count:
            found.add(f"{name}: cluster.conf", f"'{key}' is not {count}")
    if workers["parallelism"] != workers["completions"]:
        found.add(name, "not all workers run at the same time")


def check(folder, found):
    name = os.path.basename(folder)
    objects, files = combine(folder, found)
    for (kind, at), o in objects.items():
        if (o["apiVersion"], kind) not in KINDS:
            found.add(name, f"kind {kind} of {o['apiVersion']} is unknown")
        if kind == "ServiceMonitor" and set(o["spec"]) - MONITOR_FIELDS:
            found.add(name, f"unknown fields {sorted(set(o['spec']) - MONITOR_FIELDS)} of a ServiceMonitor")
        for path, allowed in CHOICES.items():
            for value in values(o, path):
                if value not in allowed:
                    found.add(f"{name}: {kind} {at}", f"{path} is {value}, not {' or '.join(sorted(allowed))}")
    check_selectors(name, objects, found)
    check_pods(name, objects, files, found)
    if ("StatefulSet", "downpour-servers") in objects:
        with open(files["downpour-cluster"]["cluster.conf"], encoding="utf-8") as file:
            conf = file.read()
        check_ports(name, objects, conf, found)
        check_counts(name, objects, conf, found)


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "deploy", "kubernetes")
    found = Findings()
    folders = sorted(f for f in os.listdir(top) if os.path.exists(os.path.join(top, f, "kustomization.yaml")))
    if not folders:
        found.add(top, "no kustomization")
    for folder in folders:
        check(os.path.join(top, folder), found)
    print("\n".join(found) if found else f"{len(folders)} kustomizations: {', '.join(folders)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
