// What a plan takes on networks: several at a time, exactly, by a rule for each step.
//
// With c the rank's clock, o the time at which its interface has sent all before, i at which it has received
// all before, a and b what is known of the message, L the latency, w(s) the interface's time for a message of
// s bytes:
//
//     SEND      c += send(s); eager: o = max(c, o) + w(s), a = o + L; else a = c
//     POST      b = c
//     TRANSFER  not eager: o = max(max(a + L, b) + L, o) + w(s), b = o, a = o + L
//     SENT      not eager: c = max(c, b)
//     RECEIVE   i = max(a, i + w(s)), c = max(c, i) + receive(s)
//
// Within a node no interface is waited for: o and i are left out. All is sums and maxima, so that the time of
// the whole is convex in every parameter, and the sum of what is on its longest path.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/plan.hpp"

namespace wulf {

constexpr size_t LANES = 8; // networks at a time

// What the longest path consists of: the time is their sum, with each number times its parameter.
struct Path {
    double compute_ns = 0;
    double reduce_bytes = 0;
    struct {
        double hops = 0; // latencies
        double send_ns = 0, receive_ns = 0, wire_ns = 0;
        double wire_bytes = 0; // those whose time on the wire counts
    } links[LOCALITIES];

    [[nodiscard]] double time_ns(const Network &network) const;
};

// One place on the longest path, from the end to the beginning.
struct Hop {
    uint32_t step;
    bool is_latency; // a message was on its way
};

struct Evaluation {
    double time_ns = 0;
    std::vector<double> rank_ns; // the end of each rank
};

// Evaluates a plan; keeps its memory between calls.
class Evaluator {
  public:
    explicit Evaluator(const Plan &plan);

    // The time of each network, at most LANES of them.
    std::vector<Evaluation> evaluate(std::span<const Network> networks);
    // The same, and what each of the longest paths consists of.
    std::vector<Path> paths(std::span<const Network> networks);
    // After `paths`: the steps of the longest path of one of these networks.
    [[nodiscard]] std::vector<Hop> hops(size_t lane) const;

  private:
    // Aligned for the widest machine: a compiler aligns them for the least.
    using Lanes =
        double __attribute__((vector_size(LANES * sizeof(double)), aligned(LANES * sizeof(double))));
    using Mask =
        int64_t __attribute__((vector_size(LANES * sizeof(int64_t)), aligned(LANES * sizeof(int64_t))));
    struct RankClock {
        Lanes clock, out, in;
    };
    struct Costs {
        Lanes send, receive, wire, latency;
        Mask agreed; // sender and receiver must be ready
        bool is_within;
    };
    struct Known { // of a message
        Lanes a, b;
    };
    // What a step made, and the path goes through.
    enum class Made : uint8_t { CLOCK, OUT, IN, ARRIVAL, READY, GONE };

    void prepare(std::span<const Network> networks);
    template <bool KEEPS_CHOICES> [[gnu::always_inline]] inline void run_steps();
    void run_plain();
    void run_with_choices();
    [[nodiscard]] std::vector<Evaluation> results() const;
    template <typename Visit> void walk(size_t lane, Visit visit) const;

    const Plan &plan_;
    std::vector<Network> networks_;
    Lanes compute_{}, reduce_{};
    std::vector<Costs> costs_;      // of each size
    std::vector<RankClock> clocks_; // of each rank
    std::vector<Known> messages_;   // of each slot
    std::vector<uint16_t> choices_; // of each step: which of two came later, twice a bit for each lane
    std::vector<uint32_t> last_;    // of each rank: its last step
};

} // namespace wulf
