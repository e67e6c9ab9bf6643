// Deterministic structure-aware mutation of small files (reliability.md, R-01).
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "formats/builders.h"

namespace hearth::test {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return n ? random_() % n : 0; }

  // Integers that sit at the edges of widths, counts and sizes.
  uint64_t edge() {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          2,
                                          3,
                                          7,
                                          8,
                                          9,
                                          12,
                                          13,
                                          31,
                                          32,
                                          33,
                                          127,
                                          128,
                                          255,
                                          256,
                                          65'535,
                                          65'536,
                                          65'537,
                                          1'000'000,
                                          1'000'001,
                                          16'000'000,
                                          16'000'001,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          uint64_t{1} << 60,
                                          uint64_t{1} << 61,
                                          uint64_t{1} << 62,
                                          (uint64_t{1} << 63) - 1,
                                          uint64_t{1} << 63,
                                          (uint64_t{1} << 63) + 8,
                                          UINT64_MAX - 31,
                                          UINT64_MAX - 1,
                                          UINT64_MAX};
    const uint64_t base = kEdges[below(std::size(kEdges))];
    return below(4) == 0 ? base + random_() % 64 - 32 : base;
  }

  // Byte level: flips, overwrites, cuts, insertions, copies within.
  void bytes(std::string& text) {
    if (text.empty()) return;
    const size_t at = below(text.size()), size = 1 + below(16);
    switch (below(7)) {
      case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = static_cast<char>(random_()); break;
      case 2: text.resize(at); break;
      case 3: text.erase(at, size); break;
      case 4: text.insert(at, size, static_cast<char>(random_())); break;
      case 5: text.insert(at, text.substr(below(text.size()), size)); break;
      default: text += std::string(size, '\0');
    }
  }

  // GGUF: a field takes an edge value, another field's value, or its own plus or minus a little.
  void gguf(std::string& text, const std::vector<GgufBytes::Field>& fields) {
    const GgufBytes::Field field = fields[below(fields.size())];
    if (field.at + static_cast<size_t>(field.bytes) > text.size()) return;
    uint64_t value = 0;
    std::memcpy(&value, text.data() + field.at, static_cast<size_t>(field.bytes));
    switch (below(4)) {
      case 0: value = value + random_() % 17 - 8; break;
      case 1: {
        const GgufBytes::Field other = fields[below(fields.size())];
        if (other.at + static_cast<size_t>(other.bytes) <= text.size())
          std::memcpy(&value, text.data() + other.at, static_cast<size_t>(other.bytes));
        break;
      }
      default: value = edge();
    }
    std::memcpy(text.data() + field.at, &value, static_cast<size_t>(field.bytes));
  }

  // JSON: tokens are replaced, doubled, dropped, exchanged, or wrapped.
  void json(std::string& text) {
    const std::vector<std::string_view> tokens = split(text);
    if (tokens.size() < 2) return;
    std::vector<std::string> out(tokens.begin(), tokens.end());
    const size_t at = below(out.size());
    switch (below(8)) {
      case 0: out.erase(out.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), out[below(out.size())]); break;
      case 2: std::swap(out[at], out[below(out.size())]); break;
      case 3: out[at] = std::to_string(edge()); break;
      case 4: out[at] = out[below(out.size())]; break;
      case 5: out[at] = "[" + out[at] + "]"; break;
      case 6: out[at] = "{\"a\":" + out[at] + "}"; break;
      default: {
        static constexpr const char* kValues[] = {"null",
                                                  "true",
                                                  "-1",
                                                  "1e999",
                                                  "0.5",
                                                  "\"\"",
                                                  "[]",
                                                  "{}",
                                                  "\"F32\"",
                                                  "\"\\u0000\"",
                                                  "\"\\ud800\"",
                                                  "\"../x.safetensors\"",
                                                  "-9223372036854775809",
                                                  "18446744073709551616",
                                                  "\"affine\"",
                                                  "false"};
        out[at] = kValues[below(std::size(kValues))];
      }
    }
    text.clear();
    for (const std::string& token : out) text += token;
  }

 private:
  // Strings, numbers and words, single punctuation characters; joined they are the text again.
  static std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> tokens;
    for (size_t i = 0; i < text.size();) {
      size_t end = i + 1;
      if (text[i] == '"') {
        while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
        end = std::min(end + 1, text.size());
      } else if (std::string_view("{}[],:").find(text[i]) == std::string_view::npos) {
        while (end < text.size() && std::string_view("{}[],:\"").find(text[end]) == std::string_view::npos) ++end;
      }
      tokens.push_back(text.substr(i, end - i));
      i = end;
    }
    return tokens;
  }

  std::mt19937_64 random_;
};

}  // namespace hearth::test
