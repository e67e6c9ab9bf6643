// KV pages in host memory: sizes, places, formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/kv.h"

namespace hearth::graph {
namespace {

constexpr int64_t kDh = 128, kHkv = 2;

// Two groups: layers 0 and 2 in the first, layer 1 in the second.
HostKv storage(KvFormat format) {
  const std::vector<KvGroup> groups = {{{0, 2}, kHkv, kDh, 0, format}, {{1}, kHkv, kDh, 32, format}};
  const std::vector<KvLayer> layers = {{0, 0}, {1, 0}, {0, 1}};
  const int64_t pages[] = {3, 2};
  return HostKv(groups, layers, pages);
}

std::vector<float> random_row(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> row(kDh);
  for (float& v : row) v = std::normal_distribution<float>(0.3f, 2)(random);
  return row;
}

// The quantizer of DESIGN 6 for one group, written anew: q, and scale and bias rounded to bf16.
std::vector<float> through_affine(const std::vector<float>& x, int bits) {
  std::vector<float> out(x.size());
  const float n = static_cast<float>((1 << bits) - 1);
  for (size_t begin = 0; begin < x.size(); begin += 64) {
    const auto first = x.begin() + static_cast<int64_t>(begin);
    const auto [low, high] = std::minmax_element(first, first + 64);
    float s = std::max((*high - *low) / n, 1e-7f), e = *high, b = 0;
    if (std::fabs(*low) > std::fabs(*high)) e = *low;
    else s = -s;
    const float i = std::nearbyint(e / s);
    if (i != 0) {
      s = e / i;
      b = e;
    }
    for (size_t d = begin; d < begin + 64; ++d) {
      const float q = std::clamp(std::nearbyint((x[d] - b) / s), 0.0f, n);
      out[d] = to_float(to_bf16(s)) * q + to_float(to_bf16(b));
    }
  }
  return out;
}

TEST(HostKv, sizes) {
  EXPECT_EQ(kv_row_bytes(KvFormat::f32, 128), 512);
  EXPECT_EQ(kv_row_bytes(KvFormat::bf16, 128), 256);
  EXPECT_EQ(kv_row_bytes(KvFormat::q8, 128), 128 + 2 * 4);
  EXPECT_EQ(kv_row_bytes(KvFormat::q4, 128), 64 + 2 * 4);
  const KvGroup g{{0, 2}, kHkv, kDh, 0, KvFormat::q4};
  EXPECT_EQ(kv_page_bytes(g), 2 * 2 * kHkv * 64 * 72);  // layers, K and V, heads, positions, row
  HostKv kv = storage(KvFormat::q4);
  EXPECT_EQ(kv.bytes(), 3 * kv_page_bytes(g) + 2 * (kv_page_bytes(g) / 2));
  EXPECT_EQ(kv.pages(0), 3);
  EXPECT_EQ(kv.pages(1), 2);
}

TEST(HostKv, values_come_back_as_their_format_says) {
  for (const KvFormat format : {KvFormat::f32, KvFormat::bf16, KvFormat::q8, KvFormat::q4}) {
    HostKv kv = storage(format);
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> x = random_row(seed);
      std::vector<float> want = x, got(kDh);
      if (format == KvFormat::bf16)
        for (float& v : want) v = to_float(to_bf16(v));
      if (format == KvFormat::q8) want = through_affine(x, 8);
      if (format == KvFormat::q4) want = through_affine(x, 4);
      kv.store(2, KvPart::value, 1, 1, 63, x.data());
      kv.load(2, KvPart::value, 1, 1, 63, got.data());
      EXPECT_EQ(got, want) << "format " << static_cast<int>(format) << " seed " << seed;
    }
  }
}

TEST(HostKv, constant_and_zero_rows_are_exact_enough) {
  for (const KvFormat format : {KvFormat::q8, KvFormat::q4}) {
    HostKv kv = storage(format);
    std::vector<float> got(kDh);
    const std::vector<float> zero(kDh, 0.0f), two(kDh, 2.0f), minus(kDh, -3.0f);
    for (const auto* row : {&zero, &two, &minus}) {
      kv.store(0, KvPart::key, 0, 0, 0, row->data());
      kv.load(0, KvPart::key, 0, 0, 0, got.data());
      EXPECT_EQ(got, *row);
    }
  }
}

TEST(HostKv, q4_puts_value_d_into_nibble_d_mod_2_of_byte_d_div_2) {
  HostKv kv = storage(KvFormat::q4);
  std::vector<float> x(kDh, 0.0f);
  for (size_t d = 0; d < 64; ++d) x[d] = static_cast<float>(d % 16) - 15;  // -15 .. 0: s = 1, b = -15, q = d % 16
  kv.store(0, KvPart::key, 0, 0, 5, x.data());
  const KvBlock block = kv.block(0, KvPart::key, 0, 0);
  const auto* row = reinterpret_cast<const uint8_t*>(block.data) + 5 * kDh / 2;
  EXPECT_EQ(row[0], 0x10);
  EXPECT_EQ(row[7], 0xfe);
  EXPECT_EQ(to_float(bf16{block.scales[5 * 2]}), 1.0f);
  EXPECT_EQ(to_float(bf16{block.biases[5 * 2]}), -15.0f);
}

TEST(HostKv, bf16_keys_lie_in_pairs_position_beside_position) {
  HostKv kv = storage(KvFormat::bf16);
  std::vector<float> x(kDh);
  for (size_t d = 0; d < x.size(); ++d) x[d] = static_cast<float>(d);
  for (const KvPart part : {KvPart::key, KvPart::value}) kv.store(0, part, 0, 1, 5, x.data());
  const auto at = [&](KvPart part, int64_t i) {
    return to_float(reinterpret_cast<const bf16*>(kv.block(0, part, 0, 1).data)[i]);
  };
  EXPECT_EQ(at(KvPart::key, 2 * 5), 0);
  EXPECT_EQ(at(KvPart::key, 2 * 5 + 1), 1);
  EXPECT_EQ(at(KvPart::key, 2 * (3 * 64 + 5)), 6);
  EXPECT_EQ(at(KvPart::value, 5 * kDh + 7), 7);
}

TEST(HostKv, no_two_rows_share_memory) {
  for (const KvFormat format : {KvFormat::f32, KvFormat::bf16, KvFormat::q4}) {
    HostKv kv = storage(format);
    float tag = 0;
    const auto each = [&](auto&& f) {
      tag = 0;
      for (const int32_t layer : {0, 1, 2})
        for (const KvPart part : {KvPart::key, KvPart::value})
          for (int32_t page = 0; page < kv.pages(kv.group_index(layer)); ++page)
            for (int64_t head = 0; head < kHkv; ++head)
              for (const int64_t slot : {0, 1, 63}) f(layer, part, page, head, slot, ++tag);
    };
    each([&](int32_t layer, KvPart part, int32_t page, int64_t head, int64_t slot, float v) {
      const std::vector<float> row(kDh, v);
      kv.store(layer, part, page, head, slot, row.data());
    });
    std::vector<float> got(kDh);
    each([&](int32_t layer, KvPart part, int32_t page, int64_t head, int64_t slot, float v) {
      kv.load(layer, part, page, head, slot, got.data());
      EXPECT_EQ(got, std::vector<float>(kDh, v)) << layer << " " << page << " " << head << " " << slot;
    });
  }
}

TEST(HostKv, a_page_is_copied_with_all_its_layers) {
  HostKv kv = storage(KvFormat::q8);
  const std::vector<float> a = random_row(1), b = random_row(2);
  kv.store(0, KvPart::key, 0, 0, 3, a.data());
  kv.store(2, KvPart::value, 0, 1, 4, b.data());
  kv.copy_page(0, 0, 2);
  std::vector<float> before(kDh), after(kDh);
  kv.load(0, KvPart::key, 0, 0, 3, before.data());
  kv.load(0, KvPart::key, 2, 0, 3, after.data());
  EXPECT_EQ(after, before);
  kv.load(2, KvPart::value, 0, 1, 4, before.data());
  kv.load(2, KvPart::value, 2, 1, 4, after.data());
  EXPECT_EQ(after, before);
}

TEST(HostKv, populating_leaves_the_bytes) {
  HostKv kv = storage(KvFormat::bf16);
  kv.poison(1, 1);
  for (int32_t page = 0; page < kv.pages(1); ++page) kv.populate(1, page);
  std::vector<float> got(kDh);
  kv.load(1, KvPart::key, 1, 0, 0, got.data());
  for (const float v : got) EXPECT_TRUE(std::isnan(v));
  kv.load(1, KvPart::key, 0, 0, 0, got.data());
  for (const float v : got) EXPECT_EQ(v, 0);
}

TEST(HostKv, poison_shows_as_nan) {
  for (const KvFormat format : {KvFormat::f32, KvFormat::bf16, KvFormat::q8, KvFormat::q4}) {
    HostKv kv = storage(format);
    kv.poison(1, 1);
    std::vector<float> got(kDh);
    kv.load(1, KvPart::key, 1, 0, 0, got.data());
    for (const float v : got) EXPECT_TRUE(std::isnan(v));
    kv.load(1, KvPart::key, 0, 0, 0, got.data());
    for (const float v : got) EXPECT_EQ(v, 0);
  }
}

}  // namespace
}  // namespace hearth::graph
