"""The parameters that the learner set, checked and converted, and the script's arguments for them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.fields import Scalar, is_utf8
from gpucourse.model.launching import ARTICLE, Parameter
from gpucourse.model.manifest import Exercise

_INT = re.compile(r"[-+]?[0-9]+(?:_[0-9]{3})*")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BOOL = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_MAX_DIGITS = 40


def resolve(exercise: Exercise, settings: Mapping[str, str], *, local: bool) -> dict[str, Scalar]:
    """Return the value of every parameter, in the order of the manifest: the learner's value, otherwise the default.

    `local`: the nodes are simulated. A parameter may have a smaller default for simulated nodes.

    Raises UnknownName for an unknown parameter. Raises UsageError if a value has the wrong type, is out of range, or is not
    among the choices.
    """
    names = [parameter.name for parameter in exercise.parameters]
    texts: dict[str, str] = {}
    for option, text in settings.items():
        name = option.removeprefix("--").replace("-", "_")
        if name not in names:
            hint = f"parameters of {exercise.id}: {', '.join(names)}" if names else f"{exercise.id} has no parameters"
            raise UnknownName("parameter", option, names, hint=hint)
        if name in texts:
            raise UsageError(f"--set {name} was typed twice, as {option} and earlier", hint=f"type it once: --set {name}=VALUE")
        texts[name] = text
    return {
        parameter.name: read_value(exercise, parameter, texts[parameter.name])
        if parameter.name in texts
        else parameter.default_for(local=local)
        for parameter in exercise.parameters
    }


def arguments(exercise: Exercise, values: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Return the script's flags: `--name=value`, `--name` or `--no-name`. Quotes, `$` and newlines in a value stay plain text.

    Parameters that only the launcher needs, such as the number of processes per node, are left out.
    """
    parameters = (
        candidate
        for candidate in exercise.parameters
        if candidate.name in values and candidate.name not in exercise.launch.for_launcher
    )
    return tuple(_flag(parameter, values[parameter.name]) for parameter in parameters)


def _flag(parameter: Parameter, value: Scalar) -> str:
    if isinstance(value, bool):
        return parameter.flag if value else "--no-" + parameter.flag.removeprefix("--")
    return f"{parameter.flag}={value!r}" if isinstance(value, float) else f"{parameter.flag}={value}"


def read_value(exercise: Exercise, parameter: Parameter, text: str, *, option: str = "--set") -> Scalar:
    """Read a value that was typed after `option`. Raises UsageError if the parameter does not allow the value."""
    value = _read(parameter, text)
    objection = f"{_short(text)} is not {ARTICLE[parameter.type]}" if value is None else parameter.find_objection(value)
    if objection is None and isinstance(value, str) and "\0" in value:
        objection = "a value cannot contain the NUL character"
    if objection is None and not is_utf8(text):
        objection = "it is not text in UTF-8"
    if objection is None and value is not None:
        return value
    raise UsageError(
        f"{option} {parameter.name}={_short(text).strip(chr(39))}: {objection}",
        hint=f"{parameter.name} is {_describe_allowed(parameter)}: {parameter.help} "
        f"(gpucourse run {exercise.id} --set {parameter.name}={parameter.default})",
    )


def _read(parameter: Parameter, text: str) -> Scalar | None:
    """Convert the text to the parameter's type; return None if that is impossible. Numbers must be written in plain ASCII
    decimal digits."""
    if parameter.type == "str":
        return text
    plain = text.strip()
    if parameter.type == "bool":
        return _BOOL.get(plain.lower())
    if len(plain) > _MAX_DIGITS:
        return None
    if _INT.fullmatch(plain):
        return int(plain) if parameter.type == "int" else float(plain)
    if not _FLOAT.fullmatch(plain):
        return None
    number = float(plain)
    if not math.isfinite(number):
        return None
    if parameter.type == "float":
        return number
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


def _describe_allowed(parameter: Parameter) -> str:
    prefix = "values with commas between them, each " if parameter.each else ""
    if parameter.choices:
        return f"{prefix}one of {', '.join(map(str, parameter.choices))}"
    low = "" if parameter.min is None else f" from {parameter.min:,.15g}"
    high = "" if parameter.max is None else f" to {parameter.max:,.15g}"
    unit = f" {parameter.unit}" if parameter.unit and (low or high) else ""
    return f"{prefix}{ARTICLE[parameter.of]}{low}{high}{unit}"


def _short(text: str) -> str:
    quoted = repr(text)
    return quoted if len(quoted) <= 60 else quoted[:56] + "...'"
