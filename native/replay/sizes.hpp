// The sizes of a plan's messages, each once.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "replay/plan.hpp"

namespace wulf {

class Sizes {
  public:
    explicit Sizes(std::vector<Size> &sizes) : sizes_(sizes) {}

    // Which of them it is. Throws InputError where there are too many, or one that no message has.
    uint32_t number(const Size &size) {
        const uint64_t key = key_of(size);
        auto &recent = recent_[(key * 0x9E3779B97F4A7C15U) >> (64 - RECENT_BITS)];
        if (recent.key != key)
            recent = {key, find(key, size)};
        return recent.number;
    }

  private:
    static constexpr uint32_t RECENT_BITS = 8;
    struct Recent {
        uint64_t key = UINT64_MAX;
        uint32_t number = 0;
    };

    // Locality and mode take the last four bits.
    static uint64_t key_of(const Size &size) {
        if (size.bytes > Step::MOST_AMOUNT)
            refuse(size.bytes);
        return size.bytes << 4 | uint64_t{static_cast<uint8_t>(size.mode)} << 1 | size.locality;
    }
    [[noreturn]] static void refuse(uint64_t bytes);
    uint32_t find(uint64_t key, const Size &size);

    std::vector<Size> &sizes_;
    std::array<Recent, size_t{1} << RECENT_BITS> recent_;
    std::unordered_map<uint64_t, uint32_t> numbers_;
};

} // namespace wulf
