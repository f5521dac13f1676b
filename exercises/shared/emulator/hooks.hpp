// Every access of a kernel arrives here, through the hooks that -fsanitize=thread inserts. libtsan is not linked.
#pragma once
#include "hazards.hpp"
#include "memory.hpp"
#include "races.hpp"
#include "requests.hpp"
#include "threads.hpp"
#include "variables.hpp"

extern "C" char __executable_start[];

// `extern __shared__ T name[]` is rewritten to an alias of this array. Anything beyond the launch's bytes is out of bounds.
extern "C" {
char emulator_dynamic_memory[(163 << 10) + 2048] __attribute__((aligned(256)));
}

namespace emulator {
bool is_registered(Place place);
void name_kernel(void* place);

// __shared__ variables are static variables of the program.
inline Shadow shared_shadow;

// Variables of the device are in sections of their own. `const` ones need one for themselves, because g++ does not mix them.
extern "C" char __start_emulator_variables[] __attribute__((weak)), __stop_emulator_variables[] __attribute__((weak));
extern "C" char __start_emulator_constants[] __attribute__((weak)), __stop_emulator_constants[] __attribute__((weak));
extern "C" char __start_emulator_uploaded[] __attribute__((weak)), __stop_emulator_uploaded[] __attribute__((weak));

// Memory that a kernel cannot write: __constant__ variables, which the host uploads, and `const` ones.
inline bool is_constant(Place place) {
  return (place >= Place(__start_emulator_uploaded) && place < Place(__stop_emulator_uploaded)) ||
         (place >= Place(__start_emulator_constants) && place < Place(__stop_emulator_constants));
}

bool is_of_device(Place place) {
  return (place >= Place(__start_emulator_variables) && place < Place(__stop_emulator_variables)) || is_constant(place);
}

inline void count_access(void* caller, bool shared, Kind kind, unsigned size, Place place) {
  if (kind == ATOMIC) {
    now.report->atomics += !shared;
    return;
  }
  if (!now.bytes_only) return requests.add(caller, shared, kind == WRITE, size, place);
  now.report->lines[{caller, shared, kind == WRITE}].bytes += size;
}

// Data of the program that is not a __shared__ variable: just after one, or the host's.
inline void touch_data(Place place, unsigned size, Kind kind, void* caller) {
  if (variables.is_built_in(place)) return;
  if (const Variable* of_host = variables.find(place); of_host && !variables.is_shared(place, 1)) {
    note(now.report->illegal_address, "variable", here(caller, kind), {}, 0, size, 0, (long long)place);
    abandon_kernel(cudaErrorIllegalAddress);
  }
  const Variable* before = variables.find_before(place);
  const Place begin = before ? before->begin : Place(__data_start);
  note(now.report->out_of_bounds, "variable", here(caller, kind), {}, (long long)(place - begin), size,
       before ? (long long)before->bytes : 0, before ? (long long)begin : 0);
}

// A variable of the device is global memory.
inline void touch_variable(Place place, unsigned size, Kind kind, void* caller) {
  const Variable* variable = variables.find(place);
  if (kind != READ && is_constant(place)) {
    note(now.report->illegal_address, "constant", here(caller, kind), {}, 0, size, 0, (long long)place);
    abandon_kernel(cudaErrorIllegalAddress);
  }
  count_access(caller, false, kind, size, place);
  if (!variable || place + size > variable->begin + variable->bytes) {
    const Place begin = variable ? variable->begin : place;
    note(now.report->out_of_bounds, "device variable", here(caller, kind), {}, (long long)(place - begin), size,
         variable ? (long long)variable->bytes : 0, (long long)begin);
    return;
  }
  check_transfers(place, size, kind, caller);
  check_races(variable_shadow, place - Place(__data_start), size, Place(_end) - Place(__data_start), kind, caller, "global");
}

inline void touch_shared(Place place, unsigned size, Kind kind, void* caller) {
  const Place dynamic = Place(emulator_dynamic_memory), begin = Place(__data_start);
  if (!variables.is_shared(place, size)) return touch_data(place, size, kind, caller);
  if (place - dynamic < sizeof emulator_dynamic_memory && place + size > dynamic + now.dynamic_bytes)
    note(now.report->out_of_bounds, "shared", here(caller, kind), {}, (long long)(place - dynamic), size, (long long)now.dynamic_bytes);
  check_races(shared_shadow, place - begin, size, Place(_end) - begin, kind, caller, "shared");
  count_access(caller, true, kind, size, place);
}

inline void touch_global(Place place, unsigned size, Kind kind, void* caller) {
  Allocation* owner = arena.find(place);
  if (!owner) {
    note(now.report->illegal_address, "far", here(caller, kind), {}, 0, size);
    abandon_kernel(cudaErrorIllegalAddress);
  }
  count_access(caller, false, kind, size, place);
  const long long offset = (long long)(place - owner->begin);
  if (owner->freed) {
    note(now.report->used_after_free, "global", here(caller, kind), {}, offset, size, (long long)owner->bytes);
  } else if (offset < 0 || size_t(offset) + size > owner->bytes) {
    note(now.report->out_of_bounds, "global", here(caller, kind), {}, offset, size, (long long)owner->bytes);
  } else if (const auto [begin, bytes] = heap.find_before(place); owner->begin == Place(heap.begin) && place + size > begin + bytes) {
    note(now.report->out_of_bounds, "heap", here(caller, kind), {}, (long long)(place - begin), size, (long long)bytes);
  } else {
    const bool fresh = kind != WRITE && owner->kind == DEVICE && arena.is_fresh(*owner, size_t(offset), size);
    check_transfers(place, size, kind, caller);
    check_races(owner->shadow, size_t(offset), size, owner->bytes, kind, caller, "global", fresh);
  }
}

// An address that belongs neither to the kernel nor to the device. The program's constants may be read.
inline void touch_elsewhere(Place place, unsigned size, Kind kind, void* caller) {
  const bool constant = place >= Place(__executable_start) && place < Place(__data_start);
  const bool argument = place - Place(now.arguments.begin) < now.arguments.bytes;
  if (((constant || argument) && kind == READ) || is_registered(place)) return;
  note(now.report->illegal_address, place < 4096 ? "null" : "host", here(caller, kind), {}, 0, size);
  abandon_kernel(cudaErrorIllegalAddress);
}

inline void touch(void* pointer, unsigned size, Kind kind, void* caller) {
  const Place place = Place(pointer);
  now.last = caller;
  if (threads.holds_stack(place)) return;
  now.report->accesses++;
  if (place & (size - 1)) {
    note(now.report->illegal_address, "misaligned", here(caller, kind), {}, 0, size);
    abandon_kernel(cudaErrorMisalignedAddress);
  }
  if (arena.holds(place))
    touch_global(place, size, kind, caller);
  else if (is_of_device(place))
    touch_variable(place, size, kind, caller);
  else if (variables.holds(place))
    touch_shared(place, size, kind, caller);
  else
    touch_elsewhere(place, size, kind, caller);
  now.is_volatile = false;
  if (!repeated.count) repeated = {place, word_at(place), 0};
  repeated.count += repeated.place == place && kind != WRITE;
  if (!now.bytes_only && --turn == 0) threads.give_turn();
}

inline bool host_may_access = false;
bool permit_host_access() { return host_may_access = true; }

// An access of a block that is not watched, or of the host to memory of the device.
__attribute__((noinline)) void pass(void* pointer, size_t bytes, Kind kind, void* caller) {
  if (now.inside) {
    now.last = caller;
    if (!now.bytes_only && --turn == 0) threads.give_turn();
  } else {
    check_host(Place(pointer), bytes, kind, caller);
    const Allocation* owner = arena.find(Place(pointer));
    if (!owner || owner->kind != DEVICE) return;
    if (!host_may_access && !now.running)
      note(report_of_host().illegal_address, "device", {{}, {}, caller, kind}, {}, 0, (long long)bytes);
    if (kind == WRITE) arena.fill(Place(pointer), bytes);
  }
}

// Most accesses of the host are to memory of its own.
inline bool is_own_of_host(void* pointer) { return Place(pointer) - seen.begin > seen.last; }

inline void see(void* pointer, unsigned size, Kind kind, void* caller) {
  if (is_own_of_host(pointer)) return;
  if (now.watched)
    touch(pointer, size, kind, caller);
  else
    pass(pointer, size, kind, caller);
}

// An access of a kernel or of the host that is volatile, which makes a difference in global memory only.
void see_volatile(void* pointer, unsigned size, Kind kind, void* caller) {
  if (!now.watched || !(arena.holds(Place(pointer)) || is_of_device(Place(pointer)))) return see(pointer, size, kind, caller);
  kind == WRITE ? note_release() : note_load();
  now.is_volatile = true;
  touch(pointer, size, kind, caller);
}

// An access whose alignment the compiler does not know, or to a whole object: a GPU moves it word by word.
inline void touch_words(void* pointer, size_t bytes, Kind kind, void* caller) {
  if (is_own_of_host(pointer)) return;
  if (!now.watched) return pass(pointer, bytes, kind, caller);
  const size_t word = (Place(pointer) | bytes) % 4 == 0 ? 4 : 1;
  for (size_t done = 0; done < bytes; done += word) touch(static_cast<char*>(pointer) + done, unsigned(word), kind, caller);
}

void check_atomic(void* place, unsigned bytes, void* caller) {
  if (!now.inside || variables.is_built_in(Place(place))) return;
  if (!now.watched) return see(place, bytes, ATOMIC, caller);
  note_atomic();
  see(place, bytes, ATOMIC, caller);
  handing.acquire();  // other threads may have had a turn
}
}  // namespace emulator

extern "C" {
// A thread of a block that is not watched has made many rounds in loops (assembly.py). `place` is in the last one.
void emulator_take_turn(void* place) {
  emulator::now.last = place;
  if (emulator::now.inside && !emulator::now.bytes_only)
    emulator::threads.give_turn();
  else
    emulator::turn = 1;  // in the next round
}
#if defined(__x86_64__)
// The same, called in the middle of a loop, whose values are in any of the registers. `emms` empties those of the x87 for others.
asm(R"(
	.text
	.globl	emulator_yield
emulator_yield:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	subq	$520, %rsp
	andq	$-16, %rsp
	fxsave64	(%rsp)
	emms
	movq	8(%rbp), %rdi
	addq	$1, %rdi
	call	emulator_take_turn
	fxrstor64	(%rsp)
	leaq	-72(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popq	%rbp
	ret
)");
#endif
#define EMULATOR_HOOKS(N)                                                                                                        \
  void __tsan_read##N(void* p) { emulator::see(p, N, emulator::READ, __builtin_return_address(0)); }                           \
  void __tsan_write##N(void* p) { emulator::see(p, N, emulator::WRITE, __builtin_return_address(0)); }                         \
  void __tsan_volatile_read##N(void* p) { emulator::see_volatile(p, N, emulator::READ, __builtin_return_address(0)); }         \
  void __tsan_volatile_write##N(void* p) { emulator::see_volatile(p, N, emulator::WRITE, __builtin_return_address(0)); }       \
  void __tsan_unaligned_read##N(void* p) { emulator::touch_words(p, N, emulator::READ, __builtin_return_address(0)); }                 \
  void __tsan_unaligned_write##N(void* p) { emulator::touch_words(p, N, emulator::WRITE, __builtin_return_address(0)); }
EMULATOR_HOOKS(1)
EMULATOR_HOOKS(2)
EMULATOR_HOOKS(4)
EMULATOR_HOOKS(8)
EMULATOR_HOOKS(16)
void __tsan_read_range(void* p, long n) { emulator::touch_words(p, size_t(n), emulator::READ, __builtin_return_address(0)); }
void __tsan_write_range(void* p, long n) { emulator::touch_words(p, size_t(n), emulator::WRITE, __builtin_return_address(0)); }
void __tsan_init() {}
void __tsan_func_entry(void*) {
  if (!emulator::now.named) emulator::name_kernel(__builtin_return_address(0));
}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
