#include "replay/replayable.hpp"

#include "replay/plan.hpp"

namespace wulf {

namespace {

constexpr std::pair<trace_unsound, const char *> REASONS[] = {
    {TRACE_THREADS, "threads that call MPI at the same time"},
    {TRACE_ONE_SIDED, "one-sided communication"},
    {TRACE_PROCESSES, "processes that are started or joined"},
    {TRACE_INTER, "communication between two groups"},
    {TRACE_CANCELLED, "requests that are cancelled"},
    {TRACE_PASSED, "calls that are not recorded"},
};

constexpr const char *INSTEAD_OF_THREADS =
    "; trace it with one thread that calls MPI, or predict its pattern (wulf program trace pattern)";

} // namespace

void require_replayable(const Trace &trace, const std::vector<uint32_t> &nodes) {
    if (trace.ranks() >= Step::MOST_RANKS)
        throw InputError("more ranks than can be replayed");
    if (!nodes.empty() && nodes.size() != trace.ranks())
        throw InputError("the ranks of the trace are " + std::to_string(trace.ranks()) +
                         ", nodes are given for " + std::to_string(nodes.size()));
    for (size_t rank = 0; rank < trace.ranks(); rank++) {
        const auto &header = trace.stream(rank).header();
        if (header.lost > 0)
            throw InputError("rank " + std::to_string(rank) + ": " + std::to_string(header.lost) +
                             " calls are missing, as its stream was full: allow it to be larger");
        for (const auto &[which, words] : REASONS)
            if (header.unsound >> which & 1)
                throw InputError("rank " + std::to_string(rank) + " uses " + words +
                                 ": what that would take on another network cannot be said from a trace" +
                                 (which == TRACE_THREADS ? INSTEAD_OF_THREADS : ""));
    }
}

} // namespace wulf
