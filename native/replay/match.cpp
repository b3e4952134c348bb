#include "replay/match.hpp"

namespace wulf {

uint64_t Matcher::hash(const Envelope &envelope) {
    uint64_t value = (uint64_t{envelope.context} << 32 | envelope.source) * 0x9E3779B97F4A7C15U;
    value ^=
        (uint64_t{envelope.destination} << 32 | static_cast<uint32_t>(envelope.tag)) * 0xC2B2AE3D27D4EB4FU;
    return (value ^ value >> 29) * 0xBF58476D1CE4E5B9U >> 16;
}

size_t Matcher::find(const Envelope &envelope) const {
    const size_t mask = table_.size() - 1;
    size_t place = hash(envelope) & mask;
    while (table_[place].head != NO_SLOT && !(table_[place].envelope == envelope))
        place = (place + 1) & mask;
    return place;
}

uint32_t Matcher::first_message(const Envelope &envelope) const {
    const auto &queue = table_[find(envelope)];
    return queue.of_messages ? queue.head : NO_SLOT;
}

uint32_t Matcher::take_or_keep(const Envelope &envelope, uint32_t slot, bool is_message) {
    const size_t place = find(envelope);
    auto &queue = table_[place];
    if (queue.head != NO_SLOT && queue.of_messages != is_message) {
        const uint32_t oldest = queue.head;
        queue.head = next_[oldest];
        if (queue.head == NO_SLOT)
            erase(place);
        return oldest;
    }
    next_[slot] = NO_SLOT;
    if (queue.head == NO_SLOT) {
        queue = {envelope, slot, slot, is_message};
        if (++used_ * 2 > table_.size())
            grow();
    } else {
        next_[queue.tail] = slot;
        queue.tail = slot;
    }
    return NO_SLOT;
}

// Move up what follows, so that no search ends at the gap (Knuth, volume 3, 6.4, algorithm R).
void Matcher::erase(size_t place) {
    const size_t mask = table_.size() - 1;
    used_--;
    size_t gap = place;
    for (size_t other = (place + 1) & mask; table_[other].head != NO_SLOT; other = (other + 1) & mask) {
        const size_t home = hash(table_[other].envelope) & mask;
        if (((other - home) & mask) >= ((other - gap) & mask)) {
            table_[gap] = table_[other];
            gap = other;
        }
    }
    table_[gap] = {};
}

void Matcher::grow() {
    std::vector<Queue> old(table_.size() * 2);
    old.swap(table_);
    for (const auto &queue : old)
        if (queue.head != NO_SLOT)
            table_[find(queue.envelope)] = queue;
}

} // namespace wulf
