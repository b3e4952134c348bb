// Where the time of each rank goes on one network: computing, the CPU's work for messages, waiting.
//
// Shares of equal cells of time, so that a picture of a run of any length is of one size.
#pragma once

#include <array>
#include <vector>

#include "replay/plan.hpp"

namespace wulf {

enum Activity : uint32_t { COMPUTING = 0, OF_MESSAGES = 1, WAITING = 2, ACTIVITIES };

// Ranks that follow each other, with the mean of their shares; a rank that has ended has none.
struct TimelineRow {
    uint32_t first_rank = 0, last_rank = 0;
    std::array<std::vector<double>, ACTIVITIES> cells; // [activity][cell], of the cell's length
};

// Which part of a run is looked at, and how closely.
struct TimelineView {
    double from_ns = 0, for_ns = 0;
    size_t rows = 1, cells = 1; // at most so many rows
};

struct Timeline {
    double time_ns = 0;   // of the whole run
    double middle_ns = 0; // when rank 0 begins the second half of its steps
    std::vector<TimelineRow> rows;
};

// By the rules of `Evaluator`.
Timeline timeline(const Plan &plan, const Network &network, const TimelineView &view);

} // namespace wulf
