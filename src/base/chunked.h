// A sequence kept in chunks: growing never moves elements once there are kChunk of them, and no single allocation is
// large. For containers that untrusted input fills (reliability.md, R-03: a vector would double).
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

// The vector interface without contiguity. Iterators stay valid until the next change. T may be incomplete where only
// Chunked<T> itself is named. At most 2^32 - 1 elements.
template <class T>
class Chunked {
  template <bool kConst>
  class Iterator {
    using Owner = std::conditional_t<kConst, const Chunked, Chunked>;

   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = std::conditional_t<kConst, const T&, T&>;
    using pointer = std::conditional_t<kConst, const T*, T*>;

    Iterator() = default;
    Iterator(Owner* owner, size_t index) : owner_(owner), index_(index) {}
    operator Iterator<true>() const
      requires(!kConst)
    {
      return {owner_, index_};
    }

    reference operator*() const { return (*owner_)[index_]; }
    pointer operator->() const { return &(*owner_)[index_]; }
    reference operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator++() { return ++index_, *this; }
    Iterator operator++(int) { return {owner_, index_++}; }
    Iterator& operator--() { return --index_, *this; }
    Iterator operator--(int) { return {owner_, index_--}; }
    Iterator& operator+=(difference_type n) { return index_ += static_cast<size_t>(n), *this; }
    Iterator& operator-=(difference_type n) { return index_ -= static_cast<size_t>(n), *this; }
    friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
    friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
    friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) {
      return static_cast<difference_type>(a.index_) - static_cast<difference_type>(b.index_);
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }
    auto operator<=>(const Iterator& other) const { return index_ <=> other.index_; }

   private:
    friend class Chunked;
    Owner* owner_ = nullptr;
    size_t index_ = 0;
  };

 public:
  using value_type = T;
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;
  using size_type = size_t;

  static constexpr size_t kChunk = 256;

  Chunked() noexcept = default;
  Chunked(std::initializer_list<T> items) : Chunked(items.begin(), items.end()) {}
  // Behind the delegation the object is there: what an element throws takes the others with it.
  template <std::input_iterator It>
  Chunked(It first, It last) : Chunked() {
    for (; first != last; ++first) emplace_back(*first);
  }
  Chunked(const Chunked& other) : Chunked(other.begin(), other.end()) {}
  Chunked(Chunked&& other) noexcept { swap(other); }
  // Two of them: a class with a member of this type would take the promise of one that gets a copy for its own.
  Chunked& operator=(const Chunked& other) {
    Chunked copy(other);
    swap(copy);
    return *this;
  }
  Chunked& operator=(Chunked&& other) noexcept {
    Chunked moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Chunked() {
    clear();
    for (size_t i = 0; i < chunks_.size(); ++i)
      if (chunks_[i]) std::allocator<T>().deallocate(chunks_[i], i == 0 ? first_ : kChunk);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  const T& back() const { return (*this)[size() - 1]; }

  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size()}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ < kChunk && size_ == first_) return grow_first(std::forward<Args>(args)...);
    if (size_ / kChunk == chunks_.size()) {
      if (chunks_.size() == chunks_.capacity()) chunks_.reserve(2 * chunks_.size());
      chunks_.push_back(std::allocator<T>().allocate(kChunk));
    }
    T* at = &(*this)[size_];
    std::construct_at(at, std::forward<Args>(args)...);
    ++size_;
    return *at;
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  void pop_back() {
    std::destroy_at(&back());
    --size_;
  }
  void clear() {
    while (!empty()) pop_back();
  }

  iterator insert(const_iterator at, T item) {
    emplace_back(std::move(item));
    const iterator place{this, at.index_};
    std::rotate(place, end() - 1, end());
    return place;
  }
  iterator erase(const_iterator from, const_iterator to) {
    const iterator place{this, from.index_};
    const iterator rest = std::move(iterator{this, to.index_}, end(), place);
    while (end() != rest) pop_back();
    return place;
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  template <class Predicate>
  size_t erase_if(Predicate predicate) {
    const size_t before = size();
    erase(std::remove_if(begin(), end(), predicate), end());
    return before - size();
  }

  void swap(Chunked& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(size_, other.size_);
    std::swap(first_, other.first_);
  }
  bool operator==(const Chunked& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  // The first chunk doubles up to kChunk. The new element is made before the others move: it may refer to one of them.
  template <class... Args>
  T& grow_first(Args&&... args) {
    if (chunks_.empty()) chunks_.push_back(nullptr);
    const uint32_t wider = first_ == 0 ? 1 : 2 * first_;
    T* chunk = std::allocator<T>().allocate(wider);
    try {
      std::construct_at(chunk + size_, std::forward<Args>(args)...);
    } catch (...) {
      std::allocator<T>().deallocate(chunk, wider);
      throw;
    }
    if (first_ > 0) {
      std::uninitialized_move_n(chunks_[0], size_, chunk);
      std::destroy_n(chunks_[0], size_);
      std::allocator<T>().deallocate(chunks_[0], first_);
    }
    chunks_[0] = chunk;
    first_ = wider;
    return chunk[size_++];
  }

  std::vector<T*> chunks_;
  uint32_t size_ = 0, first_ = 0;  // first_: capacity of chunk 0
};

}  // namespace hearth
