"""Instructions in PTX, counted by their kind."""

from __future__ import annotations

from tests.unit.exercises.scripts import beside_the_script

PTX = """
.version 8.7
    ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
    @%p1 ld.global.b32 { %r5 }, [ %rd2 + 0 ];
    st.global.v4.b32 [ %rd3 + 0 ], { %r1, %r2, %r3, %r4 };
    ld.shared.b32 %r6, [%r7];
    cp.async.cg.shared.global [ %r8 + 0 ], [ %rd4 + 0 ], 0x10, %r9;
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %r1 }, { %r2 }, { %r3 }, { %r4 };
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %r1 }, { %r2 }, { %r3 }, { %r4 };
    shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
    bar.sync 0;
    fma.rn.f32 %r1, %r2, %r3, %r4;
"""


def test_count_of_instructions_by_kind() -> None:
    ptx = beside_the_script("05-gpu-programming", "ptx")
    assert ptx.count(PTX) == {
        "loads": 2, "vector_loads": 1, "async_copies": 1, "stores": 1, "vector_stores": 1, "shuffles": 1, "barriers": 1,
        "tensor_products": 2, "tf32_products": 1, "fma": 1,
    }  # fmt: skip
