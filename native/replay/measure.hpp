// How long the replay itself takes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "replay/plan.hpp"

namespace wulf {

struct StageTimes {
    double load_ns = 0;     // the file is mapped, and all records are looked at once
    double plan_ns = 0;     // messages are matched, and put in order
    double evaluate_ns = 0; // on all networks: the time
    double paths_ns = 0;    // and what the longest paths consist of
    double curve_ns = 0;    // for the first network; 0 where it is not wanted
    size_t lines = 0;       // of the curve
};

struct Measured {
    Plan plan;
    StageTimes times;
};

// Go through all stages from the file on, once.
Measured measure(const std::string &path, const PlanOptions &options, std::span<const Network> networks,
                 const std::optional<std::pair<double, double>> &curve, size_t threads);

} // namespace wulf
