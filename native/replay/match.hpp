// Which receive gets which message: first come, first served, for each communicator, source, destination and
// tag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wulf {

// Of a communicator's messages, and of its collectives.
constexpr uint32_t context_of(uint32_t communicator) { return communicator * 2; }
constexpr uint32_t of_collectives(uint32_t context) { return context + 1; }
constexpr bool is_of_collective(uint32_t context) { return context % 2 == 1; }

struct Envelope {
    uint32_t context;
    uint32_t source, destination; // ranks of the world
    int32_t tag;

    bool operator==(const Envelope &) const = default;
};

constexpr uint32_t NO_SLOT = UINT32_MAX;

// A message that was sent and not received, or a receive that waits: one of a queue of the same envelope.
struct Queued {
    Envelope envelope{};
    uint32_t next = NO_SLOT; // in the queue
    uint32_t tail = NO_SLOT; // of the head of a queue: its last one
    bool is_message = false;
};

// Queues by envelope: of messages, or of receives, never of both. What is queued belongs to the caller:
// `Slot` is Queued, or more.
template <typename Slot> class Matcher {
  public:
    // `slots`: of all that is queued, by number.
    explicit Matcher(std::vector<Slot> &slots) : slots_(slots), table_(1024) {}

    // A slot of the other kind that has waited longest for this one, which is taken out of its queue; or
    // NO_SLOT, and this one is put into a queue.
    uint32_t match(uint32_t slot) {
        Slot &one = slots_[slot];
        const uint32_t hashed = hash(one.envelope);
        const size_t mask = table_.size() - 1;
        size_t place = hashed & mask;
        for (; table_[place].head != NO_SLOT; place = (place + 1) & mask)
            if (table_[place].hash == hashed && slots_[table_[place].head].envelope == one.envelope)
                return join(place, slot);
        table_[place] = {hashed, slot};
        one.next = NO_SLOT;
        one.tail = slot;
        if (++used_ * 2 > table_.size())
            grow();
        return NO_SLOT;
    }

    // Call `visit(slot)` for all that have met nothing.
    template <typename Visit> void each(Visit visit) const {
        for (const Queue &queue : table_)
            for (uint32_t slot = queue.head; slot != NO_SLOT; slot = slots_[slot].next)
                visit(slot);
    }

  private:
    struct Queue {
        uint32_t hash = 0;
        uint32_t head = NO_SLOT; // NO_SLOT: the place is empty
    };

    static uint32_t hash(const Envelope &envelope) {
        const uint64_t one = uint64_t{envelope.context} << 32 | envelope.source;
        const uint64_t other = uint64_t{envelope.destination} << 32 | static_cast<uint32_t>(envelope.tag);
        const uint64_t mixed = one * 0xBF58476D1CE4E5B9U + (other ^ other >> 29) * 0x94D049BB133111EBU;
        return static_cast<uint32_t>((mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15U >> 32);
    }

    uint32_t join(size_t place, uint32_t slot) {
        const uint32_t oldest = table_[place].head;
        Slot &head = slots_[oldest];
        Slot &one = slots_[slot];
        if (head.is_message == one.is_message) {
            slots_[head.tail].next = slot;
            head.tail = slot;
            one.next = NO_SLOT;
            return NO_SLOT;
        }
        if (head.next == NO_SLOT) {
            erase(place);
        } else {
            table_[place].head = head.next;
            slots_[head.next].tail = head.tail;
        }
        return oldest;
    }

    // Move up what follows, so that no search ends at the gap (Knuth, volume 3, 6.4, algorithm R).
    void erase(size_t place) {
        const size_t mask = table_.size() - 1;
        used_--;
        size_t gap = place;
        for (size_t other = (place + 1) & mask; table_[other].head != NO_SLOT; other = (other + 1) & mask)
            if (((other - table_[other].hash) & mask) >= ((other - gap) & mask)) {
                table_[gap] = table_[other];
                gap = other;
            }
        table_[gap].head = NO_SLOT;
    }

    void grow() {
        std::vector<Queue> old(table_.size() * 2);
        old.swap(table_);
        const size_t mask = table_.size() - 1;
        for (const auto &queue : old) {
            if (queue.head == NO_SLOT)
                continue;
            size_t place = queue.hash & mask;
            while (table_[place].head != NO_SLOT)
                place = (place + 1) & mask;
            table_[place] = queue;
        }
    }

    std::vector<Slot> &slots_;
    std::vector<Queue> table_; // open addressing; its size is a power of two
    size_t used_ = 0;
};

} // namespace wulf
