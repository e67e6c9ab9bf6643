// A unit of 32 k of one row: the unsigned values against the `bits` dwords that hold them (layout.h). And the eight
// six-bit scales and minima of 256 k of a row against their three dwords.
#pragma once
#include <cstdint>
#include <cstring>

namespace hearth::cpu {

// Both ways work on quads: the dword of values 4 Q .. 4 Q + 3, a byte each.
inline void pack_unit(int bits, const uint8_t* q, uint32_t* words) {
  uint32_t quad[8];
  std::memcpy(quad, q, 32);
  const auto low2 = [&](int j) {
    uint32_t w = 0;
    for (int t = 0; t < 4; ++t) w |= (quad[4 * j + t] & 0x03030303u) << 2 * t;
    return w;
  };
  const auto nibbles = [&](int i) { return (quad[2 * i] & 0x0f0f0f0fu) | (quad[2 * i + 1] & 0x0f0f0f0fu) << 4; };
  const auto high1 = [&](int at) {
    uint32_t w = 0;
    for (int Q = 0; Q < 8; ++Q) w |= (quad[Q] >> at & 0x01010101u) << Q;
    return w;
  };
  const auto high2 = [&](int j) {
    uint32_t w = 0;
    for (int t = 0; t < 4; ++t) w |= (quad[4 * j + t] >> 4 & 0x03030303u) << 2 * t;
    return w;
  };
  switch (bits) {
    case 2:
      for (int j = 0; j < 2; ++j) words[j] = low2(j);
      break;
    case 3:
      words[0] = high1(2);
      for (int j = 0; j < 2; ++j) words[1 + j] = low2(j);
      break;
    case 4:
      for (int i = 0; i < 4; ++i) words[i] = nibbles(i);
      break;
    case 5:
      words[0] = high1(4);
      for (int i = 0; i < 4; ++i) words[1 + i] = nibbles(i);
      break;
    case 6:
      for (int j = 0; j < 2; ++j) {
        words[3 * j] = high2(j);
        words[3 * j + 1] = nibbles(2 * j);
        words[3 * j + 2] = nibbles(2 * j + 1);
      }
      break;
    default: std::memcpy(words, quad, 32);
  }
}

inline void unpack_unit(int bits, const uint32_t* words, uint8_t* q) {
  uint32_t quad[8];
  for (int Q = 0; Q < 8; ++Q) {
    const int i = Q / 2, j = Q / 4, t = Q % 4, nibble = Q % 2 * 4;
    switch (bits) {
      case 2: quad[Q] = words[j] >> 2 * t & 0x03030303u; break;
      case 3: quad[Q] = (words[1 + j] >> 2 * t & 0x03030303u) | (words[0] >> Q & 0x01010101u) << 2; break;
      case 4: quad[Q] = words[i] >> nibble & 0x0f0f0f0fu; break;
      case 5: quad[Q] = (words[1 + i] >> nibble & 0x0f0f0f0fu) | (words[0] >> Q & 0x01010101u) << 4; break;
      case 6:
        quad[Q] = (words[3 * j + 1 + i % 2] >> nibble & 0x0f0f0f0fu) | (words[3 * j] >> 2 * t & 0x03030303u) << 4;
        break;
      default: quad[Q] = words[Q];
    }
  }
  std::memcpy(q, quad, 32);
}

//   words[0]  nibble g: the low four bits of scale g        words[1]  the same of minimum g
//   words[2]  bits 2 g, 2 g + 1: the upper two bits of scale g; 16 bits on: of minimum g
inline void pack_six(const uint8_t* scales, const uint8_t* minima, uint32_t* words) {
  words[0] = words[1] = words[2] = 0;
  for (int g = 0; g < 8; ++g) {
    words[0] |= (scales[g] & 15u) << 4 * g;
    words[1] |= (minima[g] & 15u) << 4 * g;
    words[2] |= (scales[g] >> 4 & 3u) << 2 * g | (minima[g] >> 4 & 3u) << (16 + 2 * g);
  }
}

struct SixBits {
  uint8_t scale, minimum;
};
inline SixBits unpack_six(const uint32_t* words, int g) {
  const auto value = [&](int low, int at) {
    return static_cast<uint8_t>((words[low] >> 4 * g & 15u) | (words[2] >> (at + 2 * g) & 3u) << 4);
  };
  return {value(0, 0), value(1, 16)};
}

}  // namespace hearth::cpu
