// Arithmetic of two integers of 16 bits, or four of 8 bits, in a word: __vadd2, __vcmpgtu4 and the like.
#pragma once

namespace emulator {
// The word of what `calculate` returns for each pair of parts. A number of the names is how many parts a word has.
template <unsigned Parts, bool Signed, class F>
unsigned by_parts(unsigned a, unsigned b, F calculate) {
  constexpr unsigned BITS = 32 / Parts, ONES = (1u << BITS) - 1;
  unsigned result = 0;
  for (unsigned first = 0; first < 32; first += BITS) {
    const int x = int(a >> first & ONES), y = int(b >> first & ONES), beyond = Signed ? 1 << (BITS - 1) : 0;
    result |= (unsigned(calculate((x ^ beyond) - beyond, (y ^ beyond) - beyond)) & ONES) << first;
  }
  return result;
}
template <unsigned Parts, bool Signed>
constexpr int clamp_part(int value) {
  constexpr int BITS = 32 / Parts, LARGEST = (1 << (BITS - Signed)) - 1, SMALLEST = Signed ? -LARGEST - 1 : 0;
  return value < SMALLEST ? SMALLEST : value > LARGEST ? LARGEST : value;
}
template <unsigned Parts, bool Signed>
unsigned add_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  by_parts<Parts, Signed>(a, b, [&sum](int x, int y) { return sum += unsigned(x < y ? y - x : x - y), 0; });
  return sum;
}
}  // namespace emulator

#define EMULATOR_PACKED(NAME, PARTS, SIGNED, RESULT)                                            \
  inline unsigned NAME##PARTS(unsigned a, unsigned b) {                                          \
    constexpr auto clamp [[maybe_unused]] = &emulator::clamp_part<PARTS, SIGNED>;                \
    return emulator::by_parts<PARTS, SIGNED>(a, b, [=](int x, int y) { return (void)y, RESULT; }); \
  }
#define EMULATOR_PACKED_BOTH(NAME, SIGNED, RESULT) \
  EMULATOR_PACKED(NAME, 2, SIGNED, RESULT)         \
  EMULATOR_PACKED(NAME, 4, SIGNED, RESULT)
#define EMULATOR_PACKED_ONE(NAME, PARTS, RESULT)                                                \
  inline unsigned NAME##PARTS(unsigned a) {                                                      \
    constexpr auto clamp [[maybe_unused]] = &emulator::clamp_part<PARTS, true>;                  \
    return emulator::by_parts<PARTS, true>(a, 0, [=](int x, int) { return RESULT; });            \
  }
#define EMULATOR_PACKED_COMPARISON(NAME, OPERATOR)                 \
  EMULATOR_PACKED_BOTH(__vcmp##NAME##s, true, -(x OPERATOR y))     \
  EMULATOR_PACKED_BOTH(__vcmp##NAME##u, false, -(x OPERATOR y))    \
  EMULATOR_PACKED_BOTH(__vset##NAME##s, true, x OPERATOR y)        \
  EMULATOR_PACKED_BOTH(__vset##NAME##u, false, x OPERATOR y)
#define EMULATOR_PACKED_DIFFERENCES(PARTS)                                                                             \
  inline unsigned __vsads##PARTS(unsigned a, unsigned b) { return emulator::add_differences<PARTS, true>(a, b); }  \
  inline unsigned __vsadu##PARTS(unsigned a, unsigned b) { return emulator::add_differences<PARTS, false>(a, b); }

EMULATOR_PACKED_BOTH(__vadd, false, x + y)
EMULATOR_PACKED_BOTH(__vaddss, true, clamp(x + y))
EMULATOR_PACKED_BOTH(__vaddus, false, clamp(x + y))
EMULATOR_PACKED_BOTH(__vsub, false, x - y)
EMULATOR_PACKED_BOTH(__vsubss, true, clamp(x - y))
EMULATOR_PACKED_BOTH(__vsubus, false, clamp(x - y))
EMULATOR_PACKED_BOTH(__vavgs, true, (x + y + (x + y >= 0)) >> 1)
EMULATOR_PACKED_BOTH(__vavgu, false, (x + y + 1) >> 1)
EMULATOR_PACKED_BOTH(__vhaddu, false, (x + y) >> 1)
EMULATOR_PACKED_BOTH(__vabsdiffs, true, x < y ? y - x : x - y)
EMULATOR_PACKED_BOTH(__vabsdiffu, false, x < y ? y - x : x - y)
EMULATOR_PACKED_BOTH(__vmaxs, true, x < y ? y : x)
EMULATOR_PACKED_BOTH(__vmaxu, false, x < y ? y : x)
EMULATOR_PACKED_BOTH(__vmins, true, y < x ? y : x)
EMULATOR_PACKED_BOTH(__vminu, false, y < x ? y : x)
EMULATOR_PACKED_BOTH(__vcmpeq, false, -(x == y))
EMULATOR_PACKED_BOTH(__vcmpne, false, -(x != y))
EMULATOR_PACKED_BOTH(__vseteq, false, x == y)
EMULATOR_PACKED_BOTH(__vsetne, false, x != y)
EMULATOR_PACKED_COMPARISON(ge, >=)
EMULATOR_PACKED_COMPARISON(gt, >)
EMULATOR_PACKED_COMPARISON(le, <=)
EMULATOR_PACKED_COMPARISON(lt, <)
EMULATOR_PACKED_ONE(__vabs, 2, x < 0 ? -x : x)
EMULATOR_PACKED_ONE(__vabs, 4, x < 0 ? -x : x)
EMULATOR_PACKED_ONE(__vabsss, 2, clamp(x < 0 ? -x : x))
EMULATOR_PACKED_ONE(__vabsss, 4, clamp(x < 0 ? -x : x))
EMULATOR_PACKED_ONE(__vneg, 2, -x)
EMULATOR_PACKED_ONE(__vneg, 4, -x)
EMULATOR_PACKED_ONE(__vnegss, 2, clamp(-x))
EMULATOR_PACKED_ONE(__vnegss, 4, clamp(-x))
EMULATOR_PACKED_DIFFERENCES(2)
EMULATOR_PACKED_DIFFERENCES(4)
#undef EMULATOR_PACKED
#undef EMULATOR_PACKED_BOTH
#undef EMULATOR_PACKED_ONE
#undef EMULATOR_PACKED_COMPARISON
#undef EMULATOR_PACKED_DIFFERENCES
