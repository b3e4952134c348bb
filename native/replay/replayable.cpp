#include "replay/replayable.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "replay/plan.hpp"

namespace wulf {

namespace {

constexpr std::pair<trace_unsound, const char *> REASONS[] = {
    {TRACE_ONE_SIDED, "one-sided communication"},
    {TRACE_PROCESSES, "processes that are started or joined"},
    {TRACE_INTER, "communication between two groups"},
    {TRACE_CANCELLED, "cancelled requests that are no receives, or whose end it did not see"},
    {TRACE_PASSED, "calls that are not recorded"},
};

// Threads that a refusal names.
constexpr size_t MOST_TOLD = 3;
constexpr const char *INSTEAD_OF_THREADS =
    ": in which order they would come on another network cannot be said from a trace; trace it with one "
    "thread that "
    "calls MPI, with a lock around all calls, or predict its pattern (wulf program trace pattern)";

// Whether calls that were at the same time are so short that it changes little to replay them in turn.
bool is_little(const trace_header &header, const trace_threads &threads) {
    return threads.threads > 0 && threads.overlapping_ns <= header.run_ns / TRACE_OVERLAP_PART;
}

std::string share_of(uint64_t part, uint64_t whole) {
    std::array<char, 32> text{};
    const double share = whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
    std::snprintf(text.data(), text.size(), "%.2g %%", std::min(share, 100.0));
    return text.data();
}

// A name as a file has it: whatever it is, it does not disturb a terminal.
std::string printable(std::string name) {
    std::ranges::replace_if(name, [](char one) { return one < ' ' || one > '~'; }, '?');
    return name;
}

// Which threads called at the same time, and for how much of the run.
std::string together(const trace_header &header, const trace_threads &threads) {
    std::string which;
    size_t told = 0;
    for (size_t one = 0; one < std::min<size_t>(threads.threads, TRACE_THREADS_NAMED); one++) {
        const trace_thread &thread = threads.of[one];
        if (thread.overlapping == 0 || ++told > MOST_TOLD)
            continue;
        which += std::string(which.empty() ? " (" : ", ") + "'" + printable(thread.name) +
                 "': " + std::to_string(thread.overlapping) + " of " + std::to_string(thread.calls) +
                 (thread.calls == 1 ? " call" : " calls");
    }
    if (told > MOST_TOLD)
        which += ", " + std::to_string(told - MOST_TOLD) + " more";
    return std::to_string(threads.threads) + " threads call MPI, at the same time for " +
           share_of(threads.overlap_ns, header.run_ns) + " of the run" + which + (which.empty() ? "" : ")");
}

void require_turns(size_t rank, const Stream &stream) {
    const trace_header &header = stream.header();
    if (!(header.unsound >> TRACE_THREADS & 1) || is_little(header, stream.threads()))
        return;
    throw InputError("rank " + std::to_string(rank) + ": " +
                     (stream.threads().threads > 0 ? together(header, stream.threads())
                                                   : "threads call MPI at the same time") +
                     INSTEAD_OF_THREADS);
}

} // namespace

void require_replayable(const Trace &trace, const std::vector<uint32_t> &nodes) {
    if (trace.ranks() >= Step::MOST_RANKS)
        throw InputError("more ranks than can be replayed");
    if (!nodes.empty() && nodes.size() != trace.ranks())
        throw InputError("the ranks of the trace are " + std::to_string(trace.ranks()) +
                         ", nodes are given for " + std::to_string(nodes.size()));
    for (size_t rank = 0; rank < trace.ranks(); rank++) {
        const auto &header = trace.stream(rank).header();
        if (header.state == TRACE_RUNNING)
            throw InputError(
                "rank " + std::to_string(rank) +
                " did not reach MPI_Finalize (it was killed, or aborted): its trace is not that of a "
                "whole run");
        if (header.lost > 0)
            throw InputError("rank " + std::to_string(rank) + ": " + std::to_string(header.lost) +
                             " calls are missing, as its stream was full: allow it to be larger");
        for (const auto &[which, words] : REASONS)
            if (header.unsound >> which & 1)
                throw InputError("rank " + std::to_string(rank) + " uses " + words +
                                 ": what that would take on another network cannot be said from a trace");
        require_turns(rank, trace.stream(rank));
    }
}

} // namespace wulf
