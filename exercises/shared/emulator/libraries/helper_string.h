// What programs need of helper_string.h of NVIDIA's samples: options of a command line such as -name=7, and the path of a file.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <strings.h>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

namespace emulator {
// The text behind `name` or `name=` among the options, or null if there is no such option.
inline const char* find_option(int count, const char** options, const char* name) {
  for (int i = 1; i < count; ++i) {
    const char* option = options[i] + strspn(options[i], "-");
    const size_t length = strcspn(option, "=");
    if (option != options[i] && strlen(name) == length && !strncasecmp(option, name, length))
      return option[length] ? option + length + 1 : option + length;
  }
  return nullptr;
}
}  // namespace emulator

inline bool checkCmdLineFlag(int count, const char** options, const char* name) {
  return emulator::find_option(count, options, name) != nullptr;
}
template <class T>
bool getCmdLineArgumentValue(int count, const char** options, const char* name, T* value) {
  const char* text = emulator::find_option(count, options, name);
  if (text) *value = T(atof(text));
  return text != nullptr;
}
inline int getCmdLineArgumentInt(int count, const char** options, const char* name) {
  const char* text = emulator::find_option(count, options, name);
  return text ? atoi(text) : 0;
}
inline float getCmdLineArgumentFloat(int count, const char** options, const char* name) {
  const char* text = emulator::find_option(count, options, name);
  return text ? float(atof(text)) : 0.0f;
}
inline bool getCmdLineArgumentString(int count, const char** options, const char* name, char** value) {
  const char* text = emulator::find_option(count, options, name);
  *value = const_cast<char*>(text);
  return text != nullptr;
}
inline int stringRemoveDelimiter(char delimiter, const char* text) {
  int place = 0;
  while (text[place] == delimiter) ++place;
  return place;
}
// The path of a data file beside the program, in data/ or above, as new memory; null if there is none.
inline char* sdkFindFilePath(const char* name, const char*) {
  for (const char* folder : {"./", "data/", "../data/", "../../Common/data/", "../../../Common/data/"}) {
    const std::string path = std::string(folder) + name;
    if (FILE* file = fopen(path.c_str(), "rb")) {
      fclose(file);
      return strdup(path.c_str());
    }
  }
  return nullptr;
}
