// Python's operators over template values. All throw Fault where Python raises.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/interpreter.h"

namespace hearth::text::jinja {

bool truth(const Value& v);
bool equal(Interpreter& in, const Value& a, const Value& b);
bool less(Interpreter& in, const Value& a, const Value& b);  // a < b
bool compare(Interpreter& in, Op op, const Value& a, const Value& b);
bool contains(Interpreter& in, const Value& container, const Value& v);
Value arithmetic(Interpreter& in, Op op, const Value& a, const Value& b);
Value negated(const Value& v);
std::optional<int64_t> length_of(Interpreter& in, const Value& v);  // len(); empty where Python has none
bool hashable(const Value& v);
Value* find_key(Interpreter& in, Dict& d, const Value& key);
Value* find_key(Interpreter& in, Dict& d, std::string_view key);
void set_key(Interpreter& in, Dict& d, const Value& key, const Value& v);  // Fault: unhashable key
Value slice(Interpreter& in, const Value& of, const Value& begin, const Value& end, const Value& step);
// Items [begin, end) as slice.indices gives them, then every step-th.
struct Indices {
  int64_t begin, step, count;
};
Indices slice_indices(const Value& begin, const Value& end, const Value& step, int64_t length);
int64_t index_of(const Value& v, std::string_view what);  // an integer argument; Fault otherwise
[[noreturn]] void undefined_used(const Value& v);

// Stable merge sort. Unlike std::stable_sort it stays inside the vector for every `less`, also one that NaN makes
// inconsistent.
template <class T, class Less>
void merge_sort(std::vector<T>& v, const Less& before) {
  std::vector<T> merged;
  for (size_t width = 1; width < v.size(); width *= 2) {
    merged.clear();
    for (size_t begin = 0; begin < v.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, v.size()), end = std::min(begin + 2 * width, v.size());
      size_t a = begin, b = middle;
      while (a < middle || b < end) {
        const bool take_b = a == middle || (b < end && before(v[b], v[a]));
        merged.push_back(std::move(v[take_b ? b++ : a++]));
      }
    }
    v.swap(merged);
  }
}

// Position of `what` in `text` from byte `from`, or npos: linear in both lengths.
size_t find_bytes(std::string_view text, std::string_view what, size_t from = 0);
size_t rfind_bytes(std::string_view text, std::string_view what);

}  // namespace hearth::text::jinja
