// Receives from anybody: what they got, which is known when they end.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/trace.hpp"

namespace wulf {

// TRACE_ANY where the receive never ended.
struct Sender {
    int32_t peer, tag;
};

// Of each that a rank began, in this order. Goes back to the begin of the stream.
std::vector<Sender> senders(Stream &stream);

} // namespace wulf
