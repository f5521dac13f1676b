"""Translate inline PTX into C++, one instruction at a time. An instruction that is not in the tables here is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

# fmt: off
TYPES = {
    "u8": "uint8_t", "s8": "int8_t", "b8": "uint8_t", "u16": "uint16_t", "s16": "int16_t", "b16": "uint16_t",
    "u32": "unsigned", "s32": "int", "b32": "unsigned", "f32": "float", "f64": "double", "pred": "bool",
    "u64": "unsigned long long", "s64": "long long", "b64": "unsigned long long",
}
VECTORS = {
    "u8": "uchar", "b8": "uchar", "s8": "char", "u16": "ushort", "b16": "ushort", "s16": "short",
    "u32": "uint", "b32": "uint",
    "s32": "int", "f32": "float", "f64": "double", "u64": "ulonglong", "b64": "ulonglong", "s64": "longlong",
}
BUILT_IN = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
REGISTERS = {
    **{f"{name}.{axis}": f"{BUILT_IN[name]}.{axis}" for axis in "xyz" for name in BUILT_IN},
    "laneid": "emulator::lane()",
    "warpid": "((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32)",
    "WARP_SZ": "32", "smid": "0u",
    "clock": "unsigned(clock64())", "clock64": "clock64()", "globaltimer": "clock64()",
    "lanemask_lt": "((1u << emulator::lane()) - 1)",
    "lanemask_le": "((2u << emulator::lane()) - 1)",
    "lanemask_gt": "~((2u << emulator::lane()) - 1)",
    "lanemask_ge": "~((1u << emulator::lane()) - 1)",
    "lanemask_eq": "(1u << emulator::lane())",
}
RESULTS = {  # of the operands {0}, {1}, {2} behind the destination, each of the instruction's type
    "mov": "{0}", "cvta": "{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "mul.lo": "{0} * {1}",
    "mad": "{0} * {1} + {2}", "mad.lo": "{0} * {1} + {2}", "fma": "fma({0}, {1}, {2})", "div": "{0} / {1}",
    "rem": "{0} % {1}", "min": "min({0}, {1})", "max": "max({0}, {1})", "and": "{0} & {1}", "or": "{0} | {1}",
    "xor": "{0} ^ {1}", "not": "~{0}", "neg": "-{0}", "abs": "{0} < 0 ? -{0} : {0}", "popc": "__popcll({0})",
    "shl": "emulator::shift_left({0}, {1})", "shr": "emulator::shift_right({0}, {1})", "brev": "__brev({0})",
    "clz": "__clz({0})", "ex2": "exp2f({0})", "lg2": "log2f({0})", "rcp": "1 / {0}", "sqrt": "sqrt({0})",
    "rsqrt": "1 / sqrt({0})", "sin": "sinf({0})", "cos": "cosf({0})", "tanh": "tanhf({0})", "dp4a": "__dp4a({0}, {1}, {2})",
    "bfe": "emulator::extract_bits({0}, {1}, {2})", "bfi": "emulator::insert_bits({0}, {1}, {2}, {3})",
    "prmt": "__byte_perm({0}, {1}, {2})", "selp": "{2} ? {0} : {1}", "activemask": "__activemask()",
}
COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}
ATOMICS = {
    "add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor",
    "exch": "atomicExch", "cas": "atomicCAS", "inc": "atomicInc", "dec": "atomicDec",
}
TILE_NUMBERS = {
    "f32": "F32", "tf32": "TF32", "s32": "S32", "f16": "F16", "bf16": "BF16", "s8": "S8", "u8": "U8", "e4m3": "E4M3",
    "e5m2": "E5M2",
}
TILE_DEPTHS = {  # of the products of 16 x 8 tiles, by the number of an operand
    "F16": (8, 16), "BF16": (8, 16), "TF32": (4, 8), "S8": (16, 32), "U8": (16, 32), "E4M3": (16, 32), "E5M2": (16, 32),
}
SHUFFLES = {"idx": "__shfl_sync", "down": "__shfl_down_sync", "up": "__shfl_up_sync", "bfly": "__shfl_xor_sync"}
WITHOUT_EFFECT = (
    "prefetch", "prefetchu", "nanosleep", "discard",
)
# fmt: on

_OPERAND = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[^,\s][^,]*")


_REMEDIES = {  # of instructions that the emulator does not have: what to use instead
    "wgmma.": "use mma.sync or WMMA, or run the program on a lab with a GPU",
    "tcgen05.": "use mma.sync or WMMA, or run the program on a lab with a GPU",
    "mbarrier.": "use cuda::barrier",
    "cp.async.bulk": "use cuda::memcpy_async",
    "cp.reduce.async.bulk": "use atomicAdd",
}


class UnknownPtx(Exception):
    """An instruction, or an operand of it, that the emulator does not have. The text names it."""


def translate(template: str, expressions: Sequence[str]) -> str:
    """Return C++ statements for the PTX of an asm statement. `expressions` are those of %0, %1, ... Raises UnknownPtx."""
    template = re.sub(r"//[^\n]*|/\*.*?\*/", " ", template, flags=re.DOTALL)
    if template.lstrip().startswith("{"):
        template = re.sub(r"^\s*\{|\}\s*;?\s*$", " ", template)
    instructions = [instruction.strip() for instruction in template.split(";")]
    return " ".join(_translate_one(instruction, expressions) for instruction in instructions if instruction)


def name_remedy(instruction: str) -> str:
    """Return what to use instead of an instruction that the emulator does not have."""
    remedies = (remedy for beginning, remedy in _REMEDIES.items() if instruction.startswith(beginning))
    return next(remedies, "write this in CUDA C++")


def _translate_one(instruction: str, expressions: Sequence[str]) -> str:
    if match := re.fullmatch(r"\.reg\s*\.(\w+)\s+([\w\s,%]+)", instruction):
        names = ", ".join(f"ptx_{name}" for name in re.findall(r"\w+", match[2]))
        return f"{_find_type(match[1])} {names};"
    if match := re.fullmatch(r"@(!?)%?(\w+)\s+(.*)", instruction, re.DOTALL):
        return f"if ({match[1]}ptx_{match[2]}) {{ {_translate_one(match[3], expressions)} }}"
    name, rest = [*instruction.split(None, 1), ""][:2]
    operands = [operand.strip() for operand in _OPERAND.findall(rest)]
    parts = name.split(".")
    try:
        return _choose(parts, operands, expressions)
    except (IndexError, KeyError):
        raise UnknownPtx(name) from None


def _choose(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    """Return the statement of an instruction. Raises KeyError, IndexError if the instruction is unknown."""
    if ".".join(parts).startswith(WITHOUT_EFFECT):
        return ""
    if parts[0] in ("membar", "fence"):
        return "__threadfence();"
    if parts[0] == "trap":
        return "__trap();"
    translate_kind = {
        **dict.fromkeys(("bar", "barrier"), _wait),
        **dict.fromkeys(("ld", "ldu", "st"), _move),
        **dict.fromkeys(("atom", "red"), _update),
        "cp": _copy,
        "mma": _multiply_tiles,
        **dict.fromkeys(("ldmatrix", "stmatrix"), _move_matrices),
        "shfl": _shuffle,
        "setp": _compare,
        "cvt": _convert,
        "vabsdiff4": _sum_differences,
    }.get(parts[0], _calculate)
    return translate_kind(parts, operands, expressions)


def _wait(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    if parts[1:] == ["warp", "sync"]:
        return f"__syncwarp({_read('u32', operands[0], expressions)});"
    if operands == ["0"] and parts[1] == "sync":
        return "__syncthreads();"
    waits = {"sync": "true", "arrive": "false"}[parts[1]]
    threads = _read("u32", operands[1], expressions) if len(operands) > 1 else "blockDim.x * blockDim.y * blockDim.z"
    return f"emulator::meet_at({_read('u32', operands[0], expressions)}, {threads}, {waits});"


def _shuffle(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    function = SHUFFLES[parts[2]]
    value, lane, clamp, mask = (_read("b32", operand, expressions) for operand in operands[1:5])
    return _write(operands[0], f"{function}({mask}, {value}, {lane}, 32 - ({clamp} >> 8 & 31))", expressions)


def _compare(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    left, right = (_read(parts[-1], operands[place], expressions) for place in (1, 2))
    return _write(operands[0], f"{left} {COMPARISONS[parts[1]]} {right}", expressions)


def _calculate(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    kind = parts[-1]
    name = ".".join(parts[:2]) if parts[1] in ("lo", "hi", "wide") else parts[0]
    if name == "mul.hi":
        result = {"u32": "__umulhi({0}, {1})", "s32": "__mulhi({0}, {1})", "u64": "__umul64hi({0}, {1})"}[kind]
    elif name in ("mul.wide", "mad.wide"):
        wide = TYPES[f"{kind[0]}{2 * int(kind[1:])}"]
        result = f"({wide})({{0}}) * ({wide})({{1}})" + (" + {2}" if name == "mad.wide" else "")
    else:
        result = RESULTS[name]
        if kind == "b64" and name in ("clz", "brev"):
            result = result.replace("(", "ll(")
    values = [_read(kind, operand, expressions) for operand in operands[1:]]
    counts = {"shl": 1, "shr": 1, "bfe": 1, "bfi": 2}.get(name, len(values))  # from there on, numbers of bits
    values[counts:] = [_read("u32", operand, expressions) for operand in operands[1 + counts :]]
    if name == "mad.wide":
        values[2] = _read(f"{kind[0]}{2 * int(kind[1:])}", operands[3], expressions)
    if name == "selp":
        values[2] = _read("pred", operands[3], expressions)
    if len(values) != len(set(re.findall(r"\{(\d)\}", result))):
        raise IndexError
    return _write(operands[0], result.format(*values), expressions)


def _sum_differences(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    """Return the sum of the differences of four bytes and a number."""
    function = {"u32.u32.u32.add": "__vsadu4", "s32.s32.s32.add": "__vsads4"}[".".join(parts[1:])]
    left, right, addend = (_read("u32", operand, expressions) for operand in operands[1:4])
    return _write(operands[0], f"{function}({left}, {right}) + {addend}", expressions)


def _convert(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    to, from_ = parts[-2:]
    value = _read(from_, operands[1], expressions)
    if from_[0] == "f" and to[0] != "f":
        whole = {"rzi": "trunc", "rni": "nearbyint", "rmi": "floor", "rpi": "ceil"}[parts[1]]
        return _write(operands[0], f"emulator::saturate_to<{TYPES[to]}>({whole}({value}))", expressions)
    return _write(operands[0], f"({TYPES[to]})({value})", expressions)


def _move(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    """Return a load or a store, of 1, 2 or 4 numbers at once."""
    kind, count = parts[-1], next((part[1] for part in parts if part in ("v2", "v4")), "")
    number = VECTORS[kind] + count if count else TYPES[kind]
    volatile = "volatile " if "volatile" in parts and not count else ""
    first, second = operands[0], operands[1]
    address, registers = (first, second) if parts[0] == "st" else (second, first)
    place = f"*reinterpret_cast<{volatile}{number}*>({_find_address(address, expressions)})"
    names = [register.strip() for register in registers.strip("{}").split(",")]
    if len(names) != int(count or 1):
        raise IndexError
    if parts[0] == "st":
        values = ", ".join(_read(kind, name, expressions) for name in names)
        return f"{place} = {number}{{{values}}};" if count else f"{place} = {values};"
    fields = [f"emulator_loaded{'.' + field if count else ''}" for field in "xyzw"[: int(count or 1)]]
    writes = " ".join(_write(name, field, expressions) for name, field in zip(names, fields, strict=True))
    return f"{{ const {number} emulator_loaded = {place}; {writes} }}"


def _update(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    kind, function = parts[-1], ATOMICS[next(part for part in parts if part in ATOMICS)]
    results, rest = (operands[:1], operands[1:]) if parts[0] == "atom" else ([], operands)
    values = ", ".join(_read(kind, operand, expressions) for operand in rest[1:])
    call = f"{function}(reinterpret_cast<{TYPES[kind]}*>({_find_address(rest[0], expressions)}), {values})"
    return _write(results[0], call, expressions) if results else f"{call};"


def _copy(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    """Return the call for cp.async: a copy, in which bytes beyond the source's size become zero, or a wait for copies."""
    if parts[1:] == ["async", "commit_group"]:
        return "emulator::commit_copies();"
    if parts[1:] == ["async", "wait_all"]:
        return "emulator::wait_for_all_copies();"
    if parts[1:] == ["async", "wait_group"]:
        return f"emulator::wait_for_copies({_read('u32', operands[0], expressions)});"
    if parts[1] != "async" or parts[2] not in ("ca", "cg"):
        raise IndexError
    to, from_ = (_find_address(operand, expressions) for operand in operands[:2])
    size = _read("u32", operands[2], expressions)
    from_size = _read("u32", operands[3], expressions) if len(operands) > 3 else size
    return f"emulator::copy_async((char*)({to}), (const char*)({from_}), {size}, {from_size});"


def _multiply_tiles(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    """Return the product of tiles: mma.sync.aligned.m16n8kDEPTH.row.col[.satfinite].D.A.B.C with four lists of registers."""
    of_d, of_a, of_b, of_c = (TILE_NUMBERS[part] for part in parts[-4:])
    depth = int(parts[3].removeprefix("m16n8k"))
    if depth not in TILE_DEPTHS[of_a] or of_c != of_d or of_d not in ("F32", "F16", "S32"):
        raise IndexError
    lists = [[name.strip() for name in operand.strip("{}").split(",")] for operand in operands[:4]]
    arrays = "".join(
        f"const unsigned emulator_{name}[] = {{{', '.join(_read('b32', register, expressions) for register in registers)}}}; "
        for name, registers in zip("abc", lists[1:], strict=True)
    )
    numbers = ", ".join(f"emulator::TileNumber::{number}" for number in (of_a, of_b, of_d))
    saturates = str("satfinite" in parts).lower()
    call = f"emulator::multiply_tiles(emulator_d, emulator_a, emulator_b, emulator_c, {depth}, {numbers}, {saturates});"
    writes = _write_each(lists[0], "emulator_d", expressions)
    return f"{{ unsigned emulator_d[{len(lists[0])}]; {arrays}{call} {writes} }}"


def _move_matrices(parts: list[str], operands: list[str], expressions: Sequence[str]) -> str:
    """Return a load or store of 1, 2 or 4 matrices of 8 x 8 elements of 16 bits."""
    count = int(next(part for part in parts if part in ("x1", "x2", "x4"))[1])
    if "m8n8" not in parts or parts[-1] != "b16":
        raise IndexError
    address, registers = operands if parts[0] == "stmatrix" else reversed(operands)
    names = [name.strip() for name in registers.strip("{}").split(",")]
    if len(names) != count:
        raise IndexError
    rest = f"{count}, {str('trans' in parts).lower()}, {_find_address(address, expressions)});"
    if parts[0] == "stmatrix":
        values = ", ".join(_read("b32", name, expressions) for name in names)
        return f"{{ const unsigned emulator_rows[] = {{{values}}}; emulator::store_matrices(emulator_rows, {rest} }}"
    writes = _write_each(names, "emulator_rows", expressions)
    return f"{{ unsigned emulator_rows[{count}]; emulator::load_matrices(emulator_rows, {rest} {writes} }}"


def _write_each(names: Sequence[str], array: str, expressions: Sequence[str]) -> str:
    return " ".join(_write(name, f"{array}[{place}]", expressions) for place, name in enumerate(names))


def _find_type(kind: str) -> str:
    if kind not in TYPES:
        raise UnknownPtx(f".{kind}")
    return TYPES[kind]


def _find_address(operand: str, expressions: Sequence[str]) -> str:
    match = re.fullmatch(r"\[\s*(%?%?[\w.]+)\s*(?:\+\s*(-?\w+)\s*)?\]", operand)
    if match is None:
        raise IndexError
    return f"emulator::address_of({_name(match[1], expressions)}) + {match[2] or 0}"


def _name(operand: str, expressions: Sequence[str]) -> str:
    """Return a register, an expression or a number of PTX in C++."""
    if match := re.fullmatch(r"%(\d+)", operand):
        return f"({expressions[int(match[1])]})"
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
        return f"emulator::reinterpret_bits<float>(0x{match[1]}u)"
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", operand):
        return f"emulator::reinterpret_bits<double>(0x{match[1]}ull)"
    if match := re.fullmatch(r"%{0,2}([A-Za-z_][\w.]*)", operand):
        return REGISTERS.get(match[1], f"ptx_{match[1]}")  # the name of a C++ variable could be the same
    if not re.fullmatch(r"-?\w+(?:\.\d+)?", operand):
        raise IndexError
    return operand


def _read(kind: str, operand: str, expressions: Sequence[str]) -> str:
    return f"emulator::bits_as<{TYPES[kind]}>({_name(operand, expressions)})"


def _write(operand: str, value: str, expressions: Sequence[str]) -> str:
    return f"emulator::assign_bits({_name(operand, expressions)}, {value});"
