// What is known of a rank while a plan is made: where it is, and what it waits for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/collectives.hpp"
#include "replay/messages.hpp"
#include "replay/senders.hpp"
#include "replay/trace.hpp"

namespace wulf {

// A collective with what is needed to go into it, perhaps later than it was begun.
struct Entry {
    trace_record record{};
    uint32_t sequence = 0; // how many there were before on this communicator
    std::vector<uint64_t> sizes;
};

struct Request {
    enum Kind : uint8_t { NONE, SEND, RECEIVE, COLLECTIVE } kind = NONE;
    bool is_persistent = false, is_active = false;
    uint32_t slot = NO_SLOT;
    std::unique_ptr<Entry> begun; // of a collective, or a persistent one
};

// The communicator that a rank used last.
struct Place {
    uint32_t number = UINT32_MAX, context = 0;
    std::span<const int32_t> members;
};

// What is needed in every turn comes first: others have theirs before it comes again.
struct alignas(64) RankState {
    std::vector<Finish> open;     // what is waited for, now or by the next Move::WAIT
    std::vector<Move> moves;      // of the collective that it is in
    Finish alone{NO_SLOT, false}; // what is waited for before all these
    uint32_t next_move = 0;
    uint32_t next_open : 31 = 0;
    uint32_t waits : 1 = false; // for all that are open

    std::vector<Request> requests;
    Place place;
    uint32_t sequence = 0; // of the collective
    bool has_unknown_parts = false;
    bool is_same = false; // the next collective may have the same moves
    bool is_done = false;

    trace_record expanded{};         // whose moves these are
    std::vector<uint32_t> sequences; // collectives so far, by communicator
    std::vector<Sender> senders;     // of receives of which the end says who it was, in order
    size_t next_sender = 0;

    // What a rank usually needs is side by side in memory.
    void reserve() {
        open.reserve(16);
        moves.reserve(48);
        requests.reserve(16);
    }
    // Of a rank that cannot go on: what it waits for.
    [[nodiscard]] const Finish &waited_for() const { return alone.slot != NO_SLOT ? alone : open[next_open]; }
};

} // namespace wulf
