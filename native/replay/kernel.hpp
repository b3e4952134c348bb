// The steps of a plan on eight networks at a time: the loop that all time goes into, built once for every
// width of vectors that machines of an architecture have. All widths make the same sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/plan.hpp"

namespace wulf {

constexpr size_t LANES = 8; // networks at a time

// A number for each network.
struct alignas(LANES * sizeof(double)) Lanes {
    double of[LANES];
};

// Of a size of messages.
struct SizeCosts {
    Lanes send, receive, wire, after;
    Lanes busy;                // before a receive, if the message has come before
    Lanes first;               // through an interface that has nothing before it
    Lanes answering, answered; // of one that is answered: until it is through, until its sender knows
    Lanes behind; // … and behind all that it has been given: less than `wire` by what may pass as a burst
};

// All bits of a network's number are set where sender and receiver must be ready.
struct alignas(LANES * sizeof(double)) Agreed {
    int64_t of[LANES];
};

struct RankClock {
    Lanes clock; // the rank's
    Lanes out;   // when its interface has sent all before
    Lanes in;    // when it has received all before
};

// Of messages on their way: when something was, and how many latencies between nodes are in that.
struct Slots {
    Lanes *times;
    Lanes *hops;
};

// What is kept of an evaluation beside its times: nothing, what each step chose, or how many latencies are in
// each time.
enum class Keeps : uint8_t { NOTHING, CHOICES, HOPS };
constexpr size_t WAYS_TO_KEEP = 3;

// What is wanted, and all that changes meanwhile.
struct Kernel {
    const Step *steps;
    std::span<const Run> runs;
    Lanes compute, reduce; // times what a rank computes; for each byte that it adds up
    Lanes latency[LOCALITIES];
    const SizeCosts *costs;         // of each size
    const Agreed *agreed;           // of each size
    RankClock *clocks, *clock_hops; // of each rank: the times, and with `Keeps::HOPS` the latencies in them
    Slots arrived, ready;           // a and b of maxplus.hpp
    uint32_t *sizes;                // of each slot, of a message that can be by agreement
    uint16_t *choices; // with `Keeps::CHOICES`, of each step: which of two came later, twice a bit a network
    uint8_t *gone_behind; // of each TRANSFER, with bursts: whether its message waited for those before
};

// One width of vectors.
struct KernelKind {
    const char *name;
    // For each of `Keeps`; the second ones where some network lets bursts through.
    void (*run[WAYS_TO_KEEP])(const Kernel &);
    void (*run_bursts[WAYS_TO_KEEP])(const Kernel &);
};

// Those that this machine has, the widest first.
std::span<const KernelKind> kernels();

} // namespace wulf
