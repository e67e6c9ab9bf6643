// Repacking: file rows to blocks of 32 rows (layout.h). Blocks are shared out over the team.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cpu/linear.h"
#include "cpu/linear/layout.h"
#include "cpu/linear/unit.h"

namespace hearth::cpu {

void write_header(const PackedTensor& w, std::span<std::byte> out);  // matrix.cpp

namespace {

// One row on its way: integers, and scales in the form that the tail holds.
struct RowParts {
  std::vector<uint8_t> q;
  std::vector<float> scale, bias;  // fp32, for 16- and 32-bit tails
  std::vector<uint8_t> sc, mn;     // small integers, for formats with a lead
  std::vector<uint16_t> d, dmin;   // f16 bits, every 256 values

  RowParts(const Shape& shape, int64_t K) {
    const size_t groups = static_cast<size_t>(K / shape.group), k = static_cast<size_t>(K);
    q.resize(k);
    scale.resize(groups), bias.resize(groups), sc.resize(groups), mn.resize(groups);
    d.resize(k / kLeadSpan), dmin.resize(k / kLeadSpan);
  }
};

uint8_t byte_at(const std::byte* p, int i) { return static_cast<uint8_t>(p[i]); }
uint16_t half_at(const std::byte* p, int i) {
  uint16_t h;
  std::memcpy(&h, p + i, 2);
  return h;
}

// The scale integers of a K-quant block, in the order of its groups (spec models 2.2, item 9).
void block_scales(Codec codec, const std::byte* block, uint16_t& d, uint16_t& dmin, uint8_t* sc, uint8_t* mn) {
  switch (codec) {
    case Codec::q4_k:
    case Codec::q5_k: {
      d = half_at(block, 0), dmin = half_at(block, 2);
      const std::byte* b = block + 4;
      for (int i = 0; i < 4; ++i) {
        sc[i] = byte_at(b, i) & 63;
        mn[i] = byte_at(b, i + 4) & 63;
        sc[i + 4] = static_cast<uint8_t>((byte_at(b, i + 8) & 15) | byte_at(b, i) >> 6 << 4);
        mn[i + 4] = static_cast<uint8_t>(byte_at(b, i + 8) >> 4 | byte_at(b, i + 4) >> 6 << 4);
      }
      break;
    }
    case Codec::q2_k:
      d = half_at(block, 80), dmin = half_at(block, 82);
      for (int i = 0; i < 16; ++i) sc[i] = byte_at(block, i) & 15, mn[i] = byte_at(block, i) >> 4;
      break;
    case Codec::q3_k:
      d = half_at(block, 108);
      for (int i = 0; i < 16; ++i) {
        const std::byte* b = block + 96;
        const int low = i < 8 ? byte_at(b, i) & 15 : byte_at(b, i - 8) >> 4;
        sc[i] = static_cast<uint8_t>((low | (byte_at(b, 8 + i % 4) >> 2 * (i / 4) & 3) << 4) - 32);
      }
      break;
    case Codec::iq4_xs:
      d = half_at(block, 0);
      for (int i = 0; i < 8; ++i) {
        const int low = byte_at(block, 4 + i / 2) >> 4 * (i % 2) & 15;
        sc[i] = static_cast<uint8_t>((low | (half_at(block, 2) >> 2 * i & 3) << 4) - 32);
      }
      break;
    default:  // q6_k
      d = half_at(block, 208);
      for (int i = 0; i < 16; ++i) sc[i] = byte_at(block, 192 + i);
  }
}

// Table formats as integers: levels plus 128 (iq4), doubled levels plus 16 (mxfp4).
constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kMxfp4Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void table_block(const std::byte* qs, const int8_t* levels, int zero, uint8_t* q) {
  for (int j = 0; j < 16; ++j) {
    q[j] = static_cast<uint8_t>(levels[byte_at(qs, j) & 15] + zero);
    q[j + 16] = static_cast<uint8_t>(levels[byte_at(qs, j) >> 4] + zero);
  }
}

void read_table_row(const PackedTensor& w, const std::byte* row, RowParts& out) {
  if (w.format.codec == Codec::iq4_xs) {
    for (int64_t i = 0; i < w.K / 32; ++i)
      table_block(row + i / 8 * 136 + 8 + i % 8 * 16, kIq4Levels, 128, &out.q[static_cast<size_t>(i * 32)]);
    return;
  }
  const bool mx = w.format.codec == Codec::mxfp4;
  const int head = mx ? 1 : 2;
  for (int64_t i = 0; i < w.K / 32; ++i) {
    const std::byte* block = row + i * (head + 16);
    table_block(block + head, mx ? kMxfp4Levels : kIq4Levels, mx ? 16 : 128, &out.q[static_cast<size_t>(i * 32)]);
    if (mx) {  // 2^(e - 128), exact as bf16 even where it is subnormal
      const uint32_t e = byte_at(block, 0), bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
      out.scale[static_cast<size_t>(i)] = std::bit_cast<float>(bits);
    } else {
      out.scale[static_cast<size_t>(i)] = to_float(f16{half_at(block, 0)});
    }
  }
}

void read_row(const PackedTensor& w, const Shape& shape, int64_t n, RowParts& out) {
  const std::byte* row = w.data.data() + n * row_bytes(w.format, w.K);
  if (is_integer_format(w.format)) unpack_row(w, n, out.q.data(), out.scale.data(), out.bias.data());
  else read_table_row(w, row, out);
  if (!shape.has_lead()) return;
  const int64_t per_block = kLeadSpan / shape.group, block_size = row_bytes(w.format, kLeadSpan);
  for (int64_t i = 0; i < w.K / kLeadSpan; ++i)
    block_scales(w.format.codec, row + i * block_size, out.d[static_cast<size_t>(i)], out.dmin[static_cast<size_t>(i)],
                 &out.sc[static_cast<size_t>(i * per_block)], &out.mn[static_cast<size_t>(i * per_block)]);
}

void put_scale(ScaleKind kind, std::byte* p, int64_t i, float x) {
  if (kind == ScaleKind::f32) {
    std::memcpy(p + 4 * i, &x, 4);
  } else {  // exact: the value came from this type
    const uint16_t bits = kind == ScaleKind::f16 ? to_f16(x).bits : to_bf16(x).bits;
    std::memcpy(p + 2 * i, &bits, 2);
  }
}

// Writes one row of integers and scales into its lanes of a block.
void put_row(const Shape& shape, const RowParts& row, int64_t r, int64_t K, std::byte* block) {
  const int64_t set = r / kSetRows, lane = r % kSetRows;
  for (int64_t k0 = 0; k0 < K; k0 += shape.span()) {
    std::byte* cell = block + shape.cell_offset(k0);
    if (shape.has_lead() && k0 % kLeadSpan == 0) {
      const size_t i = static_cast<size_t>(k0 / kLeadSpan);
      std::memcpy(cell + 2 * r, &row.d[i], 2);
      if (shape.has_bias) std::memcpy(cell + 2 * (kBlockRows + r), &row.dmin[i], 2);
      if (shape.scale == ScaleKind::u6) {
        uint32_t words[3];
        pack_six(&row.sc[8 * i], &row.mn[8 * i], words);
        std::byte* six = cell + 4 * kBlockRows + set * kSixBytes;
        for (int v = 0; v < 3; ++v) std::memcpy(six + v * 64 + lane * 4, &words[v], 4);
      }
      cell += shape.lead_bytes();
    }
    for (int u = 0; u < shape.units(); ++u) {
      uint32_t words[8];
      pack_unit(shape.bits, &row.q[static_cast<size_t>(k0 + u * kUnit)], words);
      std::byte* unit = cell + set * shape.set_bytes() + u * shape.vectors() * 64;
      for (int v = 0; v < shape.vectors(); ++v) std::memcpy(unit + v * 64 + lane * 4, &words[v], 4);
    }
    if (shape.scale == ScaleKind::u6) continue;
    std::byte* tail = cell + 2 * shape.set_bytes();
    for (int sub = 0; sub < shape.subs(); ++sub) {
      const size_t g = static_cast<size_t>(k0 / shape.group + sub);
      const int64_t i = sub * kBlockRows + r;
      if (shape.has_lead()) {
        tail[i] = std::byte{row.sc[g]};
        if (shape.has_bias) tail[shape.scale_bytes() + i] = std::byte{row.mn[g]};
      } else {
        put_scale(shape.scale, tail, i, row.scale[g]);
        if (shape.has_bias) put_scale(shape.scale, tail + shape.scale_bytes(), i, row.bias[g]);
      }
    }
  }
}

void put_plain_row(const Shape& shape, const std::byte* row, int64_t r, int64_t K, std::byte* block) {
  const int64_t size = shape.plain_size();
  for (int64_t k = 0; k < K; ++k)
    std::memcpy(block + (k * kBlockRows + r) * size, row + k * size, static_cast<size_t>(size));
}

}  // namespace

void Matrix::pack_into(const PackedTensor& w, std::span<std::byte> out, Team* team) {
  validate(w, "weights to pack");
  HEARTH_CHECK(std::cmp_equal(out.size(), packed_bytes(w.format, w.N, w.K)), "{} bytes for [{}, {}]", out.size(), w.N,
               w.K);
  write_header(w, out);
  const Shape shape = shape_of(w.format);
  const bool plain = shape.plain != Plain::no;
  const int64_t block_bytes = shape.block_bytes(w.K), blocks = blocks_of(w.N);
  const int members = team ? team->size() : 1;
  std::vector<RowParts> parts;
  if (!plain)
    for (int i = 0; i < members; ++i) parts.emplace_back(shape, w.K);

  const auto share = [&](int member) {
    for (int64_t b = blocks * member / members; b < blocks * (member + 1) / members; ++b) {
      std::byte* block = out.data() + kHeaderBytes + b * block_bytes;
      const int64_t rows = std::min(kBlockRows, w.N - b * kBlockRows);
      if (rows < kBlockRows) std::memset(block, 0, static_cast<size_t>(block_bytes));
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t n = b * kBlockRows + r;
        if (plain) {
          put_plain_row(shape, w.data.data() + n * row_bytes(w.format, w.K), r, w.K, block);
        } else {
          RowParts& row = parts[static_cast<size_t>(member)];
          read_row(w, shape, n, row);
          put_row(shape, row, r, w.K, block);
        }
      }
    }
  };
  if (team) team->run(share);
  else share(0);
}

}  // namespace hearth::cpu
