// Which bytes of the program's data are __shared__ variables: the statics of functions, by the program's own table of symbols.
#pragma once
#include "machine.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

extern "C" char __data_start[], _end[];

namespace emulator {
constexpr size_t ZONE = 1024;  // bytes behind each static of a function; building.py adds them

struct Variable {
  Place begin;
  size_t bytes;
  const char* symbol;
};

class Variables {
 public:
  Variables() : begin_(Place(__data_start)), words_((Place(_end) - begin_) / 4 + 1) {
    kinds_ = static_cast<unsigned char*>(reserve(words_));
    read_symbols();
  }

  bool holds(Place place) const { return place - begin_ < 4 * words_; }
  bool is_shared(Place place, unsigned size) const { return is(SHARED, place) && is(SHARED, place + size - 1); }
  bool is_built_in(Place place) const { return is(BUILT_IN, place); }

  // The variable that an address belongs to; null if it belongs to none.
  const Variable* find(Place place) const {
    for (const Variable& variable : variables_)
      if (place - variable.begin < variable.bytes) return &variable;
    return nullptr;
  }

  // The __shared__ variable before an address; null if there is none.
  const Variable* find_before(Place place) const {
    const Variable* nearest = nullptr;
    for (const Variable& variable : variables_)
      if (variable.begin <= place && is(SHARED, variable.begin) && (!nearest || variable.begin > nearest->begin)) nearest = &variable;
    return nearest;
  }

  // A symbol as the source has it: `tile`, not `_ZZ6kernelPfE4tile`.
  static std::string name_of(const Variable* variable) {
    if (!variable) return "";
    int status = 0;
    char* text = abi::__cxa_demangle(variable->symbol, nullptr, nullptr, &status);
    std::string name = status == 0 ? text : variable->symbol;
    free(text);
    const size_t colons = name.rfind("::");
    return colons == std::string::npos ? name : name.substr(colons + 2);
  }

 private:
  enum What : unsigned char { NOTHING, SHARED, BUILT_IN };

  bool is(What what, Place place) const { return holds(place) && kinds_[(place - begin_) / 4] == what; }

  void read_symbols() {
    const int file = open("/proc/self/exe", O_RDONLY);
    struct stat about {};
    if (file < 0 || fstat(file, &about) != 0) return;
    void* image = mmap(nullptr, size_t(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);  // kept: the names lie in it
    close(file);
    if (image == MAP_FAILED) return;
    const char* bytes = static_cast<const char*>(image);
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; ++i)
      if (sections[i].sh_type == SHT_SYMTAB) read_table(bytes, sections[i], bytes + sections[sections[i].sh_link].sh_offset);
  }

  void read_table(const char* bytes, const Elf64_Shdr& table, const char* names) {
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes + table.sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const Elf64_Sym& symbol = symbols[i];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || !symbol.st_size || !holds(symbol.st_value)) continue;
      const char* name = names + symbol.st_name;
      const What what = classify(name, symbol.st_size);
      const size_t bytes = symbol.st_size - (what == SHARED ? ZONE : 0);
      variables_.push_back({symbol.st_value, bytes, name});
      if (what) memset(kinds_ + (symbol.st_value - begin_) / 4, what, (bytes + 3) / 4);
    }
  }

  static What classify(const char* name, size_t bytes) {
    if ((!strncmp(name, "_ZZ", 3) && bytes > ZONE) || !strcmp(name, "emulator_dynamic_memory")) return SHARED;
    for (const char* known : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
      if (!strcmp(name, known)) return BUILT_IN;
    return NOTHING;
  }

  Place begin_;
  size_t words_;
  unsigned char* kinds_;
  std::vector<Variable> variables_;
};
extern Variables variables;
}  // namespace emulator
