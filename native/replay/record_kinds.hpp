// What kinds of records have in common.
#pragma once

#include <cstdint>

#include "replay/plan.hpp"

namespace wulf {

inline bool has_root(trace_kind kind) {
    return kind == TRACE_BCAST || kind == TRACE_GATHER || kind == TRACE_GATHERV || kind == TRACE_SCATTER ||
           kind == TRACE_SCATTERV || kind == TRACE_REDUCE;
}

// Collectives of which a rank does not know how much others send to it.
inline bool has_unknown_parts(trace_kind kind) {
    return kind == TRACE_GATHERV || kind == TRACE_ALLTOALLV || kind == TRACE_ALLTOALLW ||
           kind == TRACE_NEIGHBOR_ALLGATHERV || kind == TRACE_NEIGHBOR_ALLTOALLV ||
           kind == TRACE_NEIGHBOR_ALLTOALLW;
}

inline bool is_neighbourhood(trace_kind kind) {
    return kind >= TRACE_NEIGHBOR_ALLGATHER && kind <= TRACE_NEIGHBOR_ALLTOALLW;
}

inline bool is_collective(uint8_t kind) { return kind >= TRACE_BARRIER && kind <= TRACE_MAKE_COMMUNICATOR; }

inline Mode mode_of(uint8_t kind) {
    switch (kind) {
    case TRACE_SSEND:
    case TRACE_ISSEND:
    case TRACE_SSEND_INIT:
        return Mode::SYNCHRONOUS;
    case TRACE_BSEND:
    case TRACE_IBSEND:
    case TRACE_BSEND_INIT:
        return Mode::BUFFERED;
    default:
        return Mode::STANDARD;
    }
}

} // namespace wulf
