// nvcuda::wmma, products of 16 x 16 tiles. NVIDIA does not say which lane holds which number of a tile; here lane l holds the
// numbers 8 l to 8 l + 7. So values are right, bytes are counted, and sectors and requests are not.
#pragma once
#include "cuda_fp16.h"

namespace emulator {
void count_bytes_only(bool on);
// The addresses that the lanes of this warp bring; they stay valid until `leave_tile`, which waits for all lanes.
void* const* gather_addresses(void* own, void* caller);
void leave_tile(void* caller);
}  // namespace emulator

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major {
  static constexpr bool by_row = true;
};
struct col_major {
  static constexpr bool by_row = false;
};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int Rows, int Columns, int Depth, class Number, class Layout = void>
struct fragment {
  static_assert(Rows == 16 && Columns == 16 && Depth == 16, "this emulator knows tiles of 16 x 16 x 16 only");
  using element_type = Number;
  static constexpr int num_elements = 8;
  Number x[8];
};

template <class Fragment, class Value>
void fill_fragment(Fragment& tile, Value value) {
  for (auto& element : tile.x) element = typename Fragment::element_type(value);
}

template <class Use, class Number, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, Number, Layout>& tile, const Number* from, unsigned stride) {
  emulator::count_bytes_only(true);
  for (int i = 0; i < 8; ++i) {
    const int row = (emulator::lane() * 8 + i) / 16, column = (emulator::lane() * 8 + i) % 16;
    tile.x[i] = Layout::by_row ? from[row * stride + column] : from[column * stride + row];
  }
  emulator::count_bytes_only(false);
}

template <class Number>
void load_matrix_sync(fragment<accumulator, 16, 16, 16, Number>& tile, const Number* from, unsigned stride, layout_t layout) {
  emulator::count_bytes_only(true);
  for (int i = 0; i < 8; ++i) {
    const int row = (emulator::lane() * 8 + i) / 16, column = (emulator::lane() * 8 + i) % 16;
    tile.x[i] = layout == mem_row_major ? from[row * stride + column] : from[column * stride + row];
  }
  emulator::count_bytes_only(false);
}

template <class Number>
void store_matrix_sync(Number* to, const fragment<accumulator, 16, 16, 16, Number>& tile, unsigned stride, layout_t layout) {
  emulator::count_bytes_only(true);
  for (int i = 0; i < 8; ++i) {
    const int row = (emulator::lane() * 8 + i) / 16, column = (emulator::lane() * 8 + i) % 16;
    (layout == mem_row_major ? to[row * stride + column] : to[column * stride + row]) = tile.x[i];
  }
  emulator::count_bytes_only(false);
}

// d = a b + c. Each lane reads the tiles of all lanes, and computes its own eight numbers.
template <class Out, class Left, class LeftLayout, class Right, class RightLayout, class In>
EMULATOR_UNSEEN void mma_sync(fragment<accumulator, 16, 16, 16, Out>& d,
                              const fragment<matrix_a, 16, 16, 16, Left, LeftLayout>& a,
                              const fragment<matrix_b, 16, 16, 16, Right, RightLayout>& b,
                              const fragment<accumulator, 16, 16, 16, In>& c) {
  struct {
    const Left* a;
    const Right* b;
  } own = {a.x, b.x};
  void* const* lanes = emulator::gather_addresses(&own, EMULATOR_CALLER);
  auto tiles = [&](int element) EMULATOR_UNSEEN { return static_cast<const decltype(own)*>(lanes[element / 8]); };
  float sums[8];
  for (int i = 0; i < 8; ++i) {
    const int row = (emulator::lane() * 8 + i) / 16, column = (emulator::lane() * 8 + i) % 16;
    sums[i] = float(c.x[i]);
    for (int k = 0; k < 16; ++k) {
      const int in_a = row * 16 + k, in_b = k * 16 + column;
      sums[i] += float(tiles(in_a)->a[in_a % 8]) * float(tiles(in_b)->b[in_b % 8]);
    }
  }
  emulator::leave_tile(EMULATOR_CALLER);
  for (int i = 0; i < 8; ++i) d.x[i] = Out(sums[i]);
}
}  // namespace wmma
}  // namespace nvcuda
