// A trace as steps in an order in which each can be computed from those before it, whatever the network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/collectives.hpp"
#include "replay/network.hpp"
#include "replay/trace.hpp"

namespace wulf {

// A message is sent in two ways: at once (eager), or when sender and receiver have agreed (rendezvous). Which
// of them depends on its size and on the network; so there are steps for both, and those of the other way do
// nothing.
enum StepKind : uint32_t {
    COMPUTE = 0,  // nothing but the time before it
    SEND = 1,     // the message is ready; where it is eager it goes
    POST = 2,     // the receiver is ready (rendezvous only)
    TRANSFER = 3, // both are ready: the message goes (rendezvous only); `rank` is the sender's
    SENT = 4,     // the sender waits until the message has gone (rendezvous only)
    RECEIVE = 5,  // the receiver waits for the message, and takes it
    REDUCE = 6,   // what came is added up: `slot` is its bytes
};

struct Step {
    uint32_t what;       // kind, call of the program, rank
    uint32_t slot;       // of the message; of REDUCE: bytes
    uint32_t size;       // which of Plan::sizes
    uint32_t compute_ns; // the rank's time before it

    static constexpr uint32_t RANK_BITS = 22, CALL_BITS = 7;
    static constexpr uint32_t MOST_RANKS = 1U << RANK_BITS;

    [[nodiscard]] StepKind kind() const { return static_cast<StepKind>(what >> (RANK_BITS + CALL_BITS)); }
    [[nodiscard]] uint32_t rank() const { return what & (MOST_RANKS - 1); }
    [[nodiscard]] trace_kind call() const {
        return static_cast<trace_kind>(what >> RANK_BITS & ((1U << CALL_BITS) - 1));
    }
    static uint32_t packed(StepKind kind, trace_kind call, uint32_t rank) {
        return (uint32_t{kind} << CALL_BITS | static_cast<uint32_t>(call)) << RANK_BITS | rank;
    }
};
static_assert(sizeof(Step) == 16);

constexpr uint32_t NO_STEP = UINT32_MAX;

// On which other steps one depends. NO_STEP: on none.
struct Origins {
    uint32_t before = NO_STEP; // the rank's last step; of TRANSFER: the POST
    uint32_t other =
        NO_STEP; // SENT, RECEIVE: the TRANSFER, or the SEND where none can be; TRANSFER: the SEND
    uint32_t interface = NO_STEP; // the last step that took the network interface before
};

// By which way a message goes.
enum class Mode : uint8_t {
    STANDARD,    // as the network's limit says
    BUFFERED,    // always at once
    SYNCHRONOUS, // always by agreement
};

struct Size {
    uint64_t bytes = 0;
    Mode mode = Mode::STANDARD;
    Locality locality = BETWEEN_NODES;
};

struct Plan {
    uint32_t ranks = 0;
    uint32_t slots = 0;      // messages that are on their way at the same time, at most
    uint64_t operations = 0; // of the program, collectives as their messages
    std::vector<Size> sizes;
    std::vector<Step> steps;
    std::vector<Origins> origins; // of each step
    // Messages that only a buffer lets through: sent before anybody waits for them, by both sides.
    uint64_t buffered = 0;
    uint64_t largest_buffered = 0; // [bytes]
    // Receives and messages that belong to nothing, in words; the program was cut off, or the trace is not
    // whole.
    std::vector<std::string> unfinished;
};

struct PlanOptions {
    // Messages up to that size are eager on every network asked about.
    uint64_t surely_eager = 0;
    // On which node each rank is; empty: each on its own.
    std::vector<uint32_t> nodes;
    CollectiveRules rules;
};

// Throws InputError, where the trace carries what cannot be replayed, too.
Plan plan(Trace &trace, const PlanOptions &options);

} // namespace wulf
