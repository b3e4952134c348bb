// Whose turn it is. Those that were woken come first, in the order in which they were: so receivers run
// before senders run ahead, and ranks that talk with each other run side by side, while what they need is in
// the machine's caches.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wulf {

constexpr uint32_t NO_RANK = UINT32_MAX;

class Turns {
  public:
    // `states`: of each rank, so many bytes of which the machine is asked for when it is woken.
    Turns(size_t ranks, const void *states, size_t bytes)
        : ring_(std::bit_ceil(ranks)), is_ready_(ranks), states_(static_cast<const std::byte *>(states)),
          bytes_(bytes) {}

    // What the rank waited for has come.
    void wake(uint32_t rank) {
        if (is_ready_[rank])
            return;
        is_ready_[rank] = true;
        woken_.push_back(rank);
        __builtin_prefetch(states_ + rank * bytes_);
        __builtin_prefetch(states_ + rank * bytes_ + 64);
    }
    // The rank can go on, when all others that can have had their turn.
    void again(uint32_t rank) {
        is_ready_[rank] = true;
        ring_[last_++ & (ring_.size() - 1)] = rank;
    }
    // The next one, or NO_RANK.
    uint32_t take() {
        for (; !woken_.empty(); woken_.pop_back())
            ring_[--first_ & (ring_.size() - 1)] = woken_.back();
        if (first_ == last_)
            return NO_RANK;
        const uint32_t rank = ring_[first_++ & (ring_.size() - 1)];
        is_ready_[rank] = false;
        return rank;
    }

    // After `take`: the one whose turn is next, unless others are woken, or NO_RANK.
    [[nodiscard]] uint32_t next() const {
        if (!woken_.empty())
            return woken_.front();
        return first_ == last_ ? NO_RANK : ring_[first_ & (ring_.size() - 1)];
    }

  private:
    std::vector<uint32_t> ring_; // each is in it once at most
    std::vector<uint32_t> woken_;
    std::vector<uint8_t> is_ready_;
    const std::byte *states_;
    size_t bytes_;
    size_t first_ = 0, last_ = 0; // modulo its size
};

} // namespace wulf
