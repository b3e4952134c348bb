// What a plan takes on networks: several at a time, exactly, by a rule for each step.
//
// With c the rank's clock, o the time at which its interface has sent all before, i at which it has received
// all before, a and b what is known of the message, L the latency, w(s) the interface's time for a message of
// s bytes:
//
//     SEND      c += send(s); eager: g = max(c + f(s), o + w(s) - d), o = max(c, o) + w(s), a = g + L, c +=
//     after(s);
//               else a = c
//     POST      b = c
//     TRANSFER  not eager: t = max(a + L, b) + L, g = max(t + f(s), o + w(s) - d), o = max(t, o) + w(s), b =
//     g,
//               a = g + L
//     SENT      not eager: c = max(c, b + after(s))
//     ANSWER    m = max(a, b), a = m + answering, b = m + answered + L; then SENT: c = max(c, b)
//     RECEIVE   i = max(a, i + f(s)), c = max(c + busy(s), i) + receive(s)
//
// A shaped interface is ahead of its rate by d at most, and takes a message at once in f(s) (network.hpp); of
// others d = 0 and f = w, so that g = o.
//
// Within a node no interface is waited for: o and i are left out. All is sums and maxima, so that the time of
// the whole is convex in every parameter, and the sum of what is on its longest path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/kernel.hpp"

namespace wulf {

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

// The time, and how it grows with the latency between nodes.
struct Slope {
    double time_ns = 0;
    double hops = 0;
};

// One place on the longest path.
struct Hop {
    uint32_t step;   // of Plan::steps
    uint32_t rank;   // of a TRANSFER: the sender's
    uint32_t size;   // which of Plan::sizes; of a step without a message: 0
    bool is_latency; // a message was on its way
};

struct Evaluation {
    double time_ns = 0;
    std::vector<double> rank_ns; // the end of each rank
};

// Evaluates a plan; keeps its memory between calls.
class Evaluator {
  public:
    explicit Evaluator(const Plan &plan, const KernelKind &kind = kernels().front());

    // The time of each network, at most LANES of them.
    std::vector<Evaluation> evaluate(std::span<const Network> networks);
    // The same, and what each of the longest paths consists of.
    std::vector<Path> paths(std::span<const Network> networks);
    // Take networks, at most LANES of them, and look at these with other latencies between nodes.
    void take(std::span<const Network> networks);
    std::vector<Slope> slopes_at(std::span<const double> latencies_ns);
    // After `paths`: the longest path of one of these networks, from the end to the beginning.
    [[nodiscard]] std::vector<Hop> hops(size_t lane) const;

  private:
    void take(size_t lane, const Network &network);
    void run(Keeps keeps);
    void keep_choices();
    // Each network's rank that ends last.
    [[nodiscard]] uint32_t last_rank(size_t lane) const;

    const Plan &plan_;
    const KernelKind &kind_;
    std::vector<Network> networks_;
    Lanes compute_{}, reduce_{}, latency_[LOCALITIES]{};
    std::vector<SizeCosts> costs_;               // of each size
    std::vector<Agreed> agreed_;                 // of each size
    std::vector<uint8_t> agreed_bits_;           // the same, a bit for each network
    std::vector<RankClock> clocks_, clock_hops_; // of each rank
    std::vector<Lanes> arrived_, ready_;         // of each slot
    std::vector<Lanes> arrived_hops_, ready_hops_;
    std::vector<uint32_t> noted_sizes_; // of each slot
    Buffer<uint16_t> choices_;          // of each step
    Buffer<uint8_t> gone_behind_;       // the same, where some network lets bursts through
    bool has_bursts_ = false;
};

} // namespace wulf
