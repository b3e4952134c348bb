// Many evaluations of a plan: in groups of as many as there are lanes, on one thread or several.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "replay/maxplus.hpp"

namespace wulf {

// One evaluator for each thread. Each needs two bytes for every step; there are no more of them than are
// wanted and the memory allows.
class Evaluators {
  public:
    Evaluators(const Plan &plan, size_t wanted);

    // Call `evaluate(evaluator, first, size)` for groups of at most LANES out of `count`, whichever thread
    // takes them; throws what the first of them threw.
    void each_group(size_t count, const std::function<void(Evaluator &, size_t, size_t)> &evaluate);
    [[nodiscard]] std::vector<Evaluator> &all() { return evaluators_; }

  private:
    std::vector<Evaluator> evaluators_;
};

struct Scenarios {
    std::vector<Path> paths; // of each network
    std::vector<Hop> hops;   // of the first one, where they are wanted
};

// The same on any number of threads.
Scenarios evaluate_all(const Plan &plan, std::span<const Network> networks, size_t threads, bool with_hops);

} // namespace wulf
