"""What nvcc and cuobjdump print, read; and the occupancy that follows, against NVIDIA's calculator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

nvcc = beside_the_script("05-gpu-programming", "nvcc")
PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z9registersILi128ELi8ELi8EEvPKfS1_Pfi' for 'sm_75'
ptxas info    : Function properties for _Z9registersILi128ELi8ELi8EEvPKfS1_Pfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 119 registers, used 1 barriers, 8192 bytes smem, 380 bytes cmem[0]
ptxas info    : Compile time = 55.425 ms
ptxas info    : Compiling entry function '_Z5naivePKfS0_Pfi' for 'sm_75'
ptxas info    : Function properties for _Z5naivePKfS0_Pfi
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 49 registers, used 0 barriers, 380 bytes cmem[0]
"""
SASS = """
		Function : _Z6tensorPK6__halfS1_Pfi
	.headerflags	@"EF_CUDA_SM75"
        /*0110*/                   HMMA.1688.F32 R4, R16, R20, R4 ;              /* 0x0 */
        /*0120*/              @!P0 LDS.U R8, [R2] ;                               /* 0x0 */
		Function : _Z5tiledILi16EEvPKfS1_Pfi
        /*0010*/                   FFMA R1, R2, R3, R4 ;                          /* 0x0 */
        /*0020*/                   FFMA R1, R2, R3, R4 ;                          /* 0x0 */
        /*0030*/                   LDSM.16.M88 R8, [R2] ;                         /* 0x0 */
"""


def write_program(place: Path, text: str) -> str:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return str(place)


def test_read_ptxas_reads_registers_shared_memory_and_spills() -> None:
    wide, naive = nvcc.read_ptxas(PTXAS)
    assert (wide.name, wide.registers, wide.shared_bytes, wide.spill_bytes) == ("registers<128, 8, 8>", 119, 8192, 0)
    assert (naive.name, naive.registers, naive.shared_bytes, naive.spill_bytes) == ("naive", 49, 0, 20)


def test_read_sass_counts_instructions_by_kernel_and_whole_word() -> None:
    counts = nvcc.read_sass(SASS)
    assert counts["_Z6tensorPK6__halfS1_Pfi"] == {"FFMA": 0, "LDS": 1, "HMMA": 1}
    assert counts["_Z5tiledILi16EEvPKfS1_Pfi"] == {"FFMA": 2, "LDS": 0, "HMMA": 0}


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "block", "percent", "limit"),
    [
        ("sm_75", 119, 8192, 256, 50.0, "registers"),
        ("sm_75", 52, 0, 32, 50.0, "blocks"),
        ("sm_75", 32, 33 << 10, 256, 25.0, "shared memory"),
        ("sm_86", 32, 0, 64, 200 / 3, "blocks"),
        ("sm_80", 255, 0, 1024, 0.0, "registers"),
    ],
)
def test_occupancy_is_what_fits(arch: str, registers: int, shared: int, block: int, percent: float, limit: str) -> None:
    fits = nvcc.occupancy(arch, registers, shared, block)
    assert (fits.percent, fits.limit) == (pytest.approx(percent), limit)


@pytest.mark.parametrize(("arch", "registers", "block"), [("sm_1", 32, 256), ("sm_75", 32, 2048), ("sm_75", 300, 256)])
def test_occupancy_refuses_a_kernel_that_cannot_be(arch: str, registers: int, block: int) -> None:
    with pytest.raises(ValueError, match=r"sm_1 is not one of|no kernel has"):
        nvcc.occupancy(arch, registers, 0, block)


def test_find_nvcc_looks_in_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvcc, "CUDA_FOLDER", tmp_path / "nothing")
    monkeypatch.setattr(nvcc, "_list_pip_folders", lambda: [tmp_path / "pip"])
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert nvcc.find_nvcc() is None
    (tmp_path / "pip").mkdir()
    by_pip = write_program(tmp_path / "pip" / "nvcc", "true")
    assert nvcc.find_nvcc() == by_pip
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    of_cuda = write_program(tmp_path / "cuda" / "bin" / "nvcc", "true")
    assert nvcc.find_nvcc() == of_cuda
    assert nvcc.find_nvcc() != write_program(tmp_path / "nvcc", "true") == nvcc.find_nvcc()


def test_compile_says_what_nvcc_complains_of(tmp_path: Path) -> None:
    program = write_program(tmp_path / "nvcc", "echo 'my.cu(3): error: expected a \";\"'; exit 2")
    with pytest.raises(nvcc.NvccFailed, match=r"my\.cu\(3\): error"):
        nvcc.compile_cubin(program, tmp_path / "my.cu", "sm_75", tmp_path / "my.cubin")
    with pytest.raises(nvcc.NvccFailed, match="cannot be started"):
        nvcc.build_for_gpu(str(tmp_path / "gone"), tmp_path / "my.cu", "sm_75", tmp_path / "my")
