// What can be replayed at all.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/trace.hpp"

namespace wulf {

// Throws InputError where the trace carries what a replay cannot follow soundly, or `nodes` (on which node
// each rank is; empty: each on its own) is not of its ranks.
void require_replayable(const Trace &trace, const std::vector<uint32_t> &nodes);

} // namespace wulf
