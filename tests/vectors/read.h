// Oracle vectors: named arrays in one file, written by the make_*.py scripts here.
// "HVEC1\n", then per array: u32 name length, name, u64 byte count, bytes; little-endian.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace hearth::test {

class Vectors {
 public:
  // file: path below tests/vectors. Throws std::runtime_error when it is absent or cut.
  explicit Vectors(const std::string& file) {
    std::ifstream in(std::string(HEARTH_TESTS_DIR) + "/vectors/" + file, std::ios::binary);
    if (!in) throw std::runtime_error("no vectors: " + file);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    size_t at = 6;
    const auto take = [&](size_t n) {
      if (n > all.size() - at) throw std::runtime_error("cut vectors: " + file);
      at += n;
      return all.data() + at - n;
    };
    if (all.compare(0, 6, "HVEC1\n") != 0) throw std::runtime_error("no vectors: " + file);
    while (at < all.size()) {
      uint32_t name_size;
      uint64_t size;
      std::memcpy(&name_size, take(4), 4);
      std::string name(take(name_size), name_size);
      std::memcpy(&size, take(8), 8);
      arrays_.emplace(std::move(name), std::string(take(size), size));
    }
  }

  template <class T>
  std::vector<T> get(const std::string& name) const {
    const std::string& bytes = arrays_.at(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  const std::map<std::string, std::string>& arrays() const { return arrays_; }

 private:
  std::map<std::string, std::string> arrays_;
};

}  // namespace hearth::test
