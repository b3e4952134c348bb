// Receives of which only the end says what they got: from anybody, or taken back before anything came.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/trace.hpp"

namespace wulf {

// TRACE_ANY where a receive from anybody never ended, TRACE_NOBODY where one was taken back.
struct Sender {
    int32_t peer, tag;
};

constexpr bool is_late(LateReceives which, const trace_record &begun) {
    return which == LateReceives::ALL || (which == LateReceives::WILD && (begun.flags & TRACE_WILD) != 0);
}

// Of each such receive that a rank began, in this order. Goes back to the begin of the stream.
std::vector<Sender> senders(Stream &stream, LateReceives which);

} // namespace wulf
