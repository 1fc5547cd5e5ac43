// A score and its column as one number, by which columns are ranked.
#pragma once

#include <bit>
#include <cstdint>

namespace safecf {

// Larger for a higher score, and then for a lower column.
inline uint64_t sort_key(float score, int32_t column) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 and 0 are the same score
  const uint32_t order = bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
  return static_cast<uint64_t>(order) << 32 | ~static_cast<uint32_t>(column);
}
inline int32_t column_of(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }
inline float score_of(uint64_t key) {
  const auto order = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(order ^ (order >> 31 ? 0x80000000u : 0xFFFFFFFFu));
}

}  // namespace safecf
