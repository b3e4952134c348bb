// The time of a program as a function of the latency between nodes: exact, as it consists of straight lines.
#pragma once

#include <vector>

#include "replay/scenarios.hpp"

namespace wulf {

// From a latency on, the time is time_ns + hops * (latency - latency_ns).
struct Line {
    double latency_ns = 0, time_ns = 0;
    double hops = 0;
};

// The lines between two latencies, in ascending order; the same with any number of threads. Throws InputError
// where `most` is too few lines for it.
std::vector<Line> latency_curve(const Plan &plan, const Network &network, double low_ns, double high_ns,
                                size_t threads = 1, size_t most = 4096);

// The latency at which the time is `factor` times that at `from_ns`; infinite where the curve ends before.
double tolerated(const std::vector<Line> &curve, double from_ns, double factor);

// The time at a latency on the curve.
double at(const std::vector<Line> &curve, double latency_ns);

} // namespace wulf
