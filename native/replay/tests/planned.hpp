// From a trace that was made to its plan, and to times.
#pragma once

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "made_trace.hpp"
#include "replay/maxplus.hpp"

namespace wulf {

inline Plan planned(std::span<const std::byte> bytes, uint64_t surely_eager = 0,
                    std::vector<uint32_t> nodes = {}) {
    Trace trace(bytes, "made");
    PlanOptions options;
    options.surely_eager.fill(surely_eager);
    options.nodes = std::move(nodes);
    return plan(trace, options);
}

inline Plan planned(const MadeTrace &made, uint64_t surely_eager = 0, std::vector<uint32_t> nodes = {}) {
    return planned(made.bytes(), surely_eager, std::move(nodes));
}

inline double time_of(const Plan &plan, const Network &network) {
    Evaluator evaluator(plan);
    return evaluator.evaluate({&network, 1}).front().time_ns;
}

inline bool is_near(double one, double other) {
    return std::abs(one - other) <= 1e-9 * std::max(1.0, std::abs(other));
}

#define EXPECT_NEAR(got, wanted)                                                                             \
    do {                                                                                                     \
        const double expect_got = (got), expect_wanted = (wanted);                                           \
        if (!is_near(expect_got, expect_wanted)) {                                                           \
            fprintf(stderr, "%s:%d: got %.3f, wanted %.3f\n", __FILE__, __LINE__, expect_got,                \
                    expect_wanted);                                                                          \
            expect_failures++;                                                                               \
        }                                                                                                    \
    } while (0)

} // namespace wulf
