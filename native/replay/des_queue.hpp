// What is to happen, the earliest first; of what happens at one time in an order that a seed decides.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wulf {

enum class EventKind : uint32_t {
    READY,      // a rank's next message enters the interface of its node
    TRANSFER,   // a message that both sides agreed on does
    NEXT_PIECE, // a node's interface, which several ranks or messages share, is free for the next piece
    PIECE,      // a piece of a message is at the end of a way
    LAST_PIECE, // the last one of a message is
    ANNOUNCED,  // that a message is to come is known to its receiver
    COME,       // a message that a choice is about has come,
    GONE,       // or has gone
    RESUME,     // a rank that chooses goes on, in step with all others
};

struct TimedEvent {
    double time_ns;
    EventKind kind;
    uint32_t stage;  // of PIECE, LAST_PIECE: how many uplinks are behind it; one more: it comes again
    uint32_t number; // of the message, rank or node
};

// A heap with four children to each place: half as deep as one of two, and they fill one line of a cache.
class EventQueue {
  public:
    static constexpr size_t MOST_UPLINKS = 62; // that a message takes

    void clear(uint64_t seed) {
        size_ = 0;
        seed_ = seed * 0x9E3779B97F4A7C15U;
    }
    [[nodiscard]] bool empty() const { return size_ == 0; }

    // Times are never negative: their bits are in their order.
    void push(const TimedEvent &event) {
        const uint64_t what =
            uint64_t{static_cast<uint32_t>(event.kind)} << 38 | uint64_t{event.stage} << 32 | event.number;
        const Key key = Key{std::bit_cast<uint64_t>(event.time_ns)} << 64 | turn(what) << 42 | what;
        if (size_ + FIRST == 4 * lines_.size())
            lines_.resize(lines_.size() + 1 + lines_.size() / 2);
        Key *const heap = places();
        size_t place = size_++;
        for (; place > 0 && key < heap[(place - 1) / 4]; place = (place - 1) / 4)
            heap[place] = heap[(place - 1) / 4];
        heap[place] = key;
    }

    TimedEvent pop() {
        Key *const heap = places();
        const Key top = heap[0];
        const Key last = heap[--size_];
        sink(heap, last);
        const auto what = static_cast<uint64_t>(top);
        return {std::bit_cast<double>(static_cast<uint64_t>(top >> 64)),
                static_cast<EventKind>(what >> 38 & 15), static_cast<uint32_t>(what >> 32 & 63),
                static_cast<uint32_t>(what)};
    }

  private:
    __extension__ using Key = unsigned __int128; // the time, the turn, what it is
    struct alignas(64) Line {
        Key keys[4];
    };
    // The first place is the last of a line, so that children have a line to themselves.
    static constexpr size_t FIRST = 3;

    Key *places() { return lines_.front().keys + FIRST; }

    // 22 bits that come before all else among events of one time.
    [[nodiscard]] uint64_t turn(uint64_t what) const {
        uint64_t value = (what ^ seed_) * 0xBF58476D1CE4E5B9U;
        value = (value ^ value >> 29) * 0x94D049BB133111EBU;
        return value >> 42;
    }

    // The gap at the top goes down to where a key fits.
    void sink(Key *heap, Key key) const {
        size_t place = 0;
        for (size_t child = 1; child < size_; child = 4 * place + 1) {
            size_t least = child;
            Key found = heap[child];
            const size_t end = child + 4 < size_ ? child + 4 : size_;
            for (size_t other = child + 1; other < end; other++) {
                const Key one = heap[other];
                const bool is_less = one < found;
                found = is_less ? one : found;
                least = is_less ? other : least;
            }
            if (key <= found)
                break;
            heap[place] = found;
            place = least;
        }
        heap[place] = key;
    }

    std::vector<Line> lines_{1};
    size_t size_ = 0;
    uint64_t seed_ = 0;
};

} // namespace wulf
