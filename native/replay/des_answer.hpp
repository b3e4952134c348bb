// What engine B says of a program, or of several on the same nodes, as JSON Lines; see docs/protocol.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "replay/plan.hpp"

namespace wulf {

struct EventsAsked {
    std::vector<std::string> beside; // traces of programs that run at the same time
    std::string topology;            // file; empty: no uplinks
    std::vector<uint32_t> nodes; // of each rank of the first program, then of those beside; empty: by number
    uint64_t seed = 1;
};

// Throws InputError.
void require_whole(const std::string &trace, const Plan &plan);

// Replay on each network, and print. `plan` is that of `trace`, with `keeps_records`.
void print_events(Trace &trace, const std::string &name, const Plan &plan, const PlanOptions &options,
                  std::span<const Network> networks, const EventsAsked &asked);

} // namespace wulf
