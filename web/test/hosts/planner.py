"""The planner component under wasmtime's Python package: nothing of this project runs it."""

import json
import sys

import wasmtime
from wasmtime.component import Component, Linker, Record


def record(**fields):
    """A record by the component's names."""
    made = Record()
    for name, value in fields.items():
        setattr(made, name.replace("_", "-"), value)
    return made


def plain(value):
    """A component's value as JSON has it."""
    if isinstance(value, Record):
        return {name: plain(field) for name, field in vars(value).items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


engine = wasmtime.Engine()
component = Component.from_file(engine, sys.argv[1])
inputs = json.loads(sys.argv[2])
store = wasmtime.Store(engine)
# No import is answered: all that it asks for are types.
instance = Linker(engine).instantiate(store, component)
interface = instance.get_export_index(store, "bindery:compute/backend-bucket-iam-member-plan@1.0.0")
check = instance.get_func(store, instance.get_export_index(store, "check", interface))
config = record(
    project=None,
    region=None,
    policy_mode=None,
    identity_forms=None,
    datamigration_endpoint=None,
    networkservices_endpoint=None,
    compute_endpoint=None,
)
args = record(condition=None, project=None, **inputs)
checked = check(store, config, args, [])
print(json.dumps({"imports": sorted(component.type.imports(engine)), "checked": plain(checked)}))
