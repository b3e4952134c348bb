// Which receive gets which message: first come, first served, for each communicator, source, destination and
// tag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wulf {

struct Envelope {
    uint32_t context;             // of a communicator's messages, or of its collectives
    uint32_t source, destination; // ranks of the world
    int32_t tag;

    bool operator==(const Envelope &) const = default;
};

constexpr uint32_t NO_SLOT = UINT32_MAX;

// Messages that were sent and not received, and receives that wait: of one envelope never both.
class Matcher {
  public:
    // `next` of a slot: room for a number for each slot, kept by the caller.
    explicit Matcher(std::vector<uint32_t> &next) : next_(next), table_(1024) {}

    // Return the oldest receive that waits for it, or NO_SLOT and keep the message's slot.
    uint32_t send(const Envelope &envelope, uint32_t slot) { return take_or_keep(envelope, slot, true); }
    // Return the oldest message that has come, or NO_SLOT and keep the receive's slot.
    uint32_t receive(const Envelope &envelope, uint32_t slot) { return take_or_keep(envelope, slot, false); }
    // Whether a message waits.
    [[nodiscard]] uint32_t first_message(const Envelope &envelope) const;

  private:
    struct Queue {
        Envelope envelope{};
        uint32_t head = NO_SLOT, tail = NO_SLOT; // no head: the place is empty
        bool of_messages = false;
    };

    static uint64_t hash(const Envelope &envelope);
    [[nodiscard]] size_t find(const Envelope &envelope) const;
    uint32_t take_or_keep(const Envelope &envelope, uint32_t slot, bool is_message);
    void erase(size_t place);
    void grow();

    std::vector<uint32_t> &next_;
    std::vector<Queue> table_; // open addressing; its size is a power of two
    size_t used_ = 0;
};

} // namespace wulf
