// A trace as steps in an order in which each can be computed from those before it, whatever the network.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/collectives.hpp"
#include "replay/memory.hpp"
#include "replay/network.hpp"
#include "replay/trace.hpp"

namespace wulf {

// A message is sent in two ways: at once (eager), or when sender and receiver have agreed (rendezvous). Which
// of them depends on its size and on the network. A message that is eager on every network asked about has a
// SEND and a RECEIVE; any other has steps for both ways, and those of the way that it does not go do nothing.
enum StepKind : uint32_t {
    COMPUTE = 0,  // the rank's own time
    SEND = 1,     // the message is ready; where it is eager it goes
    POST = 2,     // the receiver is ready (rendezvous only)
    TRANSFER = 3, // both are ready: the message goes (rendezvous only)
    SENT = 4,     // the sender waits until the message has gone (rendezvous only)
    RECEIVE = 5,  // the receiver waits for the message, and takes it
    REDUCE = 6,   // what came is added up
    ANSWER = 7,   // a message that went at once has come, and its receiver is ready: it says so to its sender
};

// Whose step it is, its run says.
class Step {
  public:
    static constexpr uint32_t KIND_BITS = 3, CALL_BITS = 7, FIELD_BITS = 20;
    static constexpr uint32_t MOST_SIZES = 1U << FIELD_BITS, MOST_RANKS = 1U << FIELD_BITS;
    static constexpr uint64_t MOST_AMOUNT = (uint64_t{1} << (FIELD_BITS + 32)) - 1;
    // Of what `way` is made: the kind, and these.
    static constexpr uint32_t IS_WITHIN = 1U << KIND_BITS, IS_MUTUAL = 2U << KIND_BITS;
    static constexpr uint32_t WAYS = 4U << KIND_BITS;

    // COMPUTE: an amount in ns; REDUCE: one in bytes.
    static Step of_amount(StepKind kind, trace_kind call, uint64_t amount) {
        return {kind, call, static_cast<uint32_t>(amount >> 32), static_cast<uint32_t>(amount)};
    }
    // TRANSFER: whose the message is; its size is that of its other steps.
    static Step of_transfer(trace_kind call, uint32_t sender, uint32_t slot) {
        return {TRANSFER, call, sender, slot};
    }
    // Any other. A message is mutual where sender and receiver must agree on some network.
    static Step of_message(StepKind kind, trace_kind call, uint32_t size, uint32_t slot, bool is_within,
                           bool is_mutual) {
        return {kind | (is_within ? IS_WITHIN : 0) | (is_mutual ? IS_MUTUAL : 0), call, size, slot};
    }

    // The kind, within a node or not, and mutual or not, as one number below WAYS.
    [[nodiscard]] uint32_t way() const { return what_ & (WAYS - 1); }
    [[nodiscard]] StepKind kind() const { return static_cast<StepKind>(what_ & ((1U << KIND_BITS) - 1)); }
    // What the program had called.
    [[nodiscard]] trace_kind call() const {
        return static_cast<trace_kind>(what_ >> CALL_PLACE & ((1U << CALL_BITS) - 1));
    }
    [[nodiscard]] bool is_within() const { return (what_ & IS_WITHIN) != 0; }
    [[nodiscard]] bool is_mutual() const { return (what_ & IS_MUTUAL) != 0; }
    // COMPUTE, REDUCE: [ns], [B].
    [[nodiscard]] uint64_t amount() const { return uint64_t{what_ >> FIELD_PLACE} << 32 | more_; }
    [[nodiscard]] uint32_t size() const { return what_ >> FIELD_PLACE; }   // which of Plan::sizes
    [[nodiscard]] uint32_t sender() const { return what_ >> FIELD_PLACE; } // of TRANSFER
    [[nodiscard]] uint32_t slot() const { return more_; }

  private:
    static constexpr uint32_t CALL_PLACE = KIND_BITS + 2, FIELD_PLACE = CALL_PLACE + CALL_BITS;
    static_assert(FIELD_PLACE + FIELD_BITS == 32);
    Step(uint32_t way, trace_kind call, uint32_t field, uint32_t more)
        : what_(way | static_cast<uint32_t>(call) << CALL_PLACE | field << FIELD_PLACE), more_(more) {}

    uint32_t what_;
    uint32_t more_;
};
static_assert(sizeof(Step) == 8);

// Steps of one rank, one after the other: up to `end`, from where the run before ended.
struct Run {
    uint32_t rank;
    uint32_t end;
};

// By which way a message goes.
enum class Mode : uint8_t {
    STANDARD,    // as the network's limit says
    BUFFERED,    // always at once
    SYNCHRONOUS, // always by agreement
    ANSWERED,    // always at once; its receiver says that it has come, and its sender waits for that
    // No messages, but what a rank has to do by itself: a SEND within the node that nobody receives.
    MAKING,     // a communicator
    CONNECTING, // before its first message to another node
};

inline bool is_own_work(Mode mode) { return mode >= Mode::MAKING; }

struct Size {
    uint64_t bytes = 0;
    Mode mode = Mode::STANDARD;
    Locality locality = BETWEEN_NODES;
};

// What a message takes on a network.
struct MessageCosts {
    double send = 0, receive = 0, after = 0, wire = 0;
    double busy = 0;  // so much more its receiver, if it has come before that waits for it
    double first = 0; // through an interface that has nothing before it
    double answering = 0, answered = 0;
    bool agreed = false; // sender and receiver must be ready
};
MessageCosts costs_of(const Network &network, const Size &size);

struct Plan {
    uint32_t ranks = 0;
    uint64_t trace_slots = 0;  // records of the trace, and parts of what belongs to them
    uint32_t slots = 0;        // messages that are on their way at the same time, at most
    uint64_t operations = 0;   // messages that are sent and received, collectives as theirs
    uint64_t computations = 0; // times between them, and sums
    uint64_t transfers = 0;    // messages that go by agreement on some network, or are answered
    std::vector<Size> sizes;
    Buffer<Step> steps;
    Buffer<Run> runs;
    // Of each step: the record of its rank's stream that it is of; only where that was asked for.
    Buffer<uint32_t> record_of;
    // Messages that only a buffer lets through: sent before anybody waits for them, by both sides.
    uint64_t buffered = 0;
    uint64_t largest_buffered = 0; // [bytes]
    // Messages that nobody receives, though nobody waits for that.
    uint64_t lost = 0;
    uint32_t lost_from = 0, lost_to = 0; // ranks of one of them
    // Receives and messages that belong to nothing, in words; the program was cut off, or the trace is not
    // whole.
    std::vector<std::string> unfinished;

    // Call `visit(number, rank, step)` for all steps in their order.
    template <typename Visit> void each(Visit visit) const {
        uint32_t number = 0;
        for (const Run &run : runs)
            for (; number < run.end; number++)
                visit(number, run.rank, steps[number]);
    }
};

// What a plan takes, with what is noted of each step while it is evaluated [B].
uint64_t needed_bytes(const Plan &plan);

struct PlanOptions {
    // Messages up to these sizes are eager on every network asked about, by locality.
    std::array<uint64_t, LOCALITIES> surely_eager{};
    // On which node each rank is; empty: each on its own.
    std::vector<uint32_t> nodes;
    CollectiveRules rules;
    bool keeps_records = false;
};

// Throws InputError, where the trace carries what cannot be replayed, or needs more memory than there is,
// too.
Plan plan(Trace &trace, const PlanOptions &options);

} // namespace wulf
