// The tensor cores' instructions of PTX: mma with tiles of 16 x 8, ldmatrix and stmatrix. Elements are assigned to lanes as in
// the PTX ISA, "Matrix Fragments for mma". Products are summed in double and rounded once; a GPU may round in between.
#pragma once
#include "hooks.hpp"

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_fp8.h"

namespace emulator {
// Bits of one element.
inline unsigned width_of(TileNumber number) {
  switch (number) {
    case TileNumber::F32: case TileNumber::TF32: case TileNumber::S32: return 32;
    case TileNumber::F16: case TileNumber::BF16: return 16;
    default: return 8;
  }
}

inline double read_element(const unsigned* registers, unsigned element, TileNumber number) {
  const unsigned width = width_of(number), in_register = 32 / width;
  const unsigned bits = registers[element / in_register] >> element % in_register * width;
  switch (number) {
    case TileNumber::F32: return reinterpret_bits<float>(bits);
    case TileNumber::TF32: return reinterpret_bits<float>(bits & ~0x1fffu);  // the tensor core ignores the last 13 bits
    case TileNumber::S32: return int(bits);
    case TileNumber::F16: return HalfCoding::widen(uint16_t(bits));
    case TileNumber::BF16: return Bfloat16Coding::widen(uint16_t(bits));
    case TileNumber::S8: return int8_t(bits);
    case TileNumber::U8: return uint8_t(bits);
    case TileNumber::E4M3: return widen_fp8(uint8_t(bits), __NV_E4M3);
    default: return widen_fp8(uint8_t(bits), __NV_E5M2);
  }
}

inline unsigned make_whole(double sum, bool saturates) {
  if (saturates) return unsigned(int(std::min(2147483647.0, std::max(-2147483648.0, sum))));
  return unsigned((long long)sum);  // which wraps
}

// d = a b + c, with 16 x depth, depth x 8 and 16 x 8 elements. Lane 4 g + t has the rows g and g + 8 of a, c and d, and the column
// g of b; of the elements of a row that fill four registers, the t-th quarter.
void multiply_tiles(unsigned* d, const unsigned* a, const unsigned* b, const unsigned* c, unsigned depth, TileNumber of_a, TileNumber of_b,
                    TileNumber of_sum, bool saturates) {
  const unsigned in_register = 32 / width_of(of_a), block = 4 * in_register;
  struct Fragments {
    double a[16], b[8];
  } own;
  for (unsigned i = 0; i < depth / 2; ++i) own.a[i] = read_element(a, i, of_a);
  for (unsigned i = 0; i < depth / 4; ++i) own.b[i] = read_element(b, i, of_b);
  void* const caller = __builtin_return_address(0);
  const auto* const lanes = reinterpret_cast<const Fragments* const*>(gather_addresses(&own, caller));
  double sums[4];
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = unsigned(lane()) / 4 + i / 2 * 8, column = unsigned(lane()) % 4 * 2 + i % 2;
    sums[i] = read_element(c, i, of_sum);
    for (unsigned k = 0; k < depth; ++k) {
      const unsigned quarter = k % block / in_register, rest = k % in_register, of_block = k / block;
      const double left = lanes[row % 8 * 4 + quarter]->a[(of_block * 2 + row / 8) * in_register + rest];
      sums[i] += left * lanes[column * 4 + quarter]->b[of_block * in_register + rest];
    }
  }
  leave_tile(caller);
  for (unsigned i = 0; i < 4; ++i) {
    if (of_sum == TileNumber::S32) d[i] = make_whole(sums[i], saturates);
    if (of_sum == TileNumber::F32) d[i] = reinterpret_bits<unsigned>(float(sums[i]));
    if (of_sum == TileNumber::F16 && i % 2 == 1)
      d[i / 2] = HalfCoding::round(float(sums[i - 1])) | unsigned(HalfCoding::round(float(sums[i]))) << 16;
  }
}

// `count` matrices of 8 x 8 elements of 16 bits in shared memory. Lane i passes the address of row i % 8 of matrix i / 8, and
// gets two neighbours of a row (transposed: of a column) of each matrix. Eight lanes read 16 bytes each at a time.
void load_matrices(unsigned* registers, unsigned count, bool transposed, const void* row) {
  void* const caller = __builtin_return_address(0);
  const unsigned own = unsigned(lane());
  if (own < 8 * count) see(const_cast<void*>(row), 16, READ, caller);
  void* const* const rows = gather_addresses(const_cast<void*>(row), caller);
  for (unsigned i = 0; i < 2 * count; ++i) {
    const unsigned far = own / 4, near = own % 4 * 2 + i % 2;
    uint16_t element;
    memcpy(&element, static_cast<const char*>(rows[i / 2 * 8 + (transposed ? near : far)]) + 2 * (transposed ? far : near), 2);
    registers[i / 2] = i % 2 ? registers[i / 2] | unsigned(element) << 16 : element;
  }
  leave_tile(caller);
}

void store_matrices(const unsigned* registers, unsigned count, bool transposed, void* row) {
  void* const caller = __builtin_return_address(0);
  const unsigned own = unsigned(lane());
  if (own < 8 * count) see(row, 16, WRITE, caller);
  void* const* const rows = gather_addresses(row, caller);
  for (unsigned i = 0; i < 2 * count; ++i) {
    const unsigned far = own / 4, near = own % 4 * 2 + i % 2;
    const auto element = uint16_t(registers[i / 2] >> i % 2 * 16);
    memcpy(static_cast<char*>(rows[i / 2 * 8 + (transposed ? near : far)]) + 2 * (transposed ? far : near), &element, 2);
  }
  leave_tile(caller);
}
}  // namespace emulator
