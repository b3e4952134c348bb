// Programs and networks at random.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "made_trace.hpp"
#include "replay/network.hpp"

namespace wulf {

using Random = std::mt19937_64;

inline uint64_t below(Random &random, uint64_t limit) { return random() % limit; }

// Messages and collectives in one order for all, so that it ends whatever the network is.
inline MadeTrace random_program(Random &random, uint32_t ranks) {
    MadeTrace made(ranks);
    std::vector<std::vector<std::pair<uint32_t, bool>>> open(ranks); // requests that run; whether persistent
    std::vector<uint32_t> numbers(ranks, 1);
    const auto compute = [&] { return below(random, 3) == 0 ? below(random, 20000) : 0; };
    const auto wait_for = [&](size_t rank, size_t place) {
        const auto [request, is_persistent] = open[rank][place];
        made.add(rank, {.kind = TRACE_WAIT, .request = request, .compute_ns = compute()});
        if (is_persistent)
            made.add(rank, {.kind = TRACE_FREE, .request = request});
        open[rank].erase(open[rank].begin() + static_cast<std::ptrdiff_t>(place));
    };
    const auto begun = [&](size_t rank, trace_kind now, trace_kind init, int32_t peer, uint64_t bytes,
                           int32_t tag) {
        const uint32_t request = numbers[rank]++;
        const bool is_persistent = below(random, 4) == 0;
        made.add(rank, {.kind = is_persistent ? init : now,
                        .peer = peer,
                        .bytes = bytes,
                        .tag = tag,
                        .request = request,
                        .compute_ns = compute()});
        if (is_persistent)
            made.add(rank, {.kind = TRACE_START, .request = request});
        open[rank].push_back({request, is_persistent});
    };
    const uint64_t events = 5 + below(random, 40);
    made.library = below(random, 2) == 0 ? "Open MPI v4.1.4" : "";
    for (uint64_t event = 0; event < events; event++) {
        if (below(random, 8) == 0) {
            static const trace_kind kinds[] = {TRACE_BARRIER,
                                               TRACE_BCAST,
                                               TRACE_ALLREDUCE,
                                               TRACE_ALLGATHER,
                                               TRACE_ALLTOALL,
                                               TRACE_REDUCE,
                                               TRACE_GATHER,
                                               TRACE_SCATTER,
                                               TRACE_SCAN,
                                               TRACE_REDUCE_SCATTER_BLOCK,
                                               TRACE_MAKE_COMMUNICATOR};
            const auto kind = kinds[below(random, std::size(kinds))];
            const uint64_t bytes = below(random, 2) == 0 ? below(random, 2000) : below(random, 400000);
            const auto root = static_cast<int32_t>(below(random, ranks));
            for (size_t rank = 0; rank < ranks; rank++)
                made.add(rank, {.kind = kind, .peer = root, .bytes = bytes, .compute_ns = compute()});
            continue;
        }
        const auto source = below(random, ranks);
        const auto destination = (source + 1 + below(random, ranks - 1)) % ranks;
        const uint64_t bytes = below(random, 3000);
        const auto tag = static_cast<int32_t>(below(random, 2));
        const auto to = static_cast<int32_t>(destination), from = static_cast<int32_t>(source);
        switch (below(random, 4)) {
        case 0:
            made.add(source,
                     {.kind = TRACE_SSEND, .peer = to, .bytes = bytes, .tag = tag, .compute_ns = compute()});
            break;
        case 1:
            begun(source, TRACE_ISEND, TRACE_SEND_INIT, to, bytes, tag);
            break;
        default:
            made.add(source,
                     {.kind = TRACE_SEND, .peer = to, .bytes = bytes, .tag = tag, .compute_ns = compute()});
        }
        if (below(random, 2) == 0)
            made.add(destination,
                     {.kind = TRACE_RECV, .peer = from, .bytes = 3000, .tag = tag, .compute_ns = compute()});
        else
            begun(destination, TRACE_IRECV, TRACE_RECV_INIT, from, 3000, tag);
        for (size_t rank = 0; rank < ranks; rank++)
            if (!open[rank].empty() && below(random, 3) == 0)
                wait_for(rank, below(random, open[rank].size()));
    }
    for (size_t rank = 0; rank < ranks; rank++)
        while (!open[rank].empty())
            wait_for(rank, 0);
    return made;
}

inline Network random_network(Random &random) {
    Network network{.name = "random",
                    .links = {},
                    .reduce_per_byte_ns = 0.1 * static_cast<double>(below(random, 10)),
                    .compute = 0.5 + 0.1 * static_cast<double>(below(random, 10)),
                    .making_ns = static_cast<double>(below(random, 9000)),
                    .connecting_ns = static_cast<double>(below(random, 9000))};
    for (auto &link : network.links) {
        link.latency_ns = static_cast<double>(below(random, 20000));
        link.eager_bytes = below(random, 4000);
        link.answering_ns = static_cast<double>(below(random, 5000));
        link.answered_ns = static_cast<double>(below(random, 5000));
        for (auto *pieces : {&link.send, &link.receive, &link.busy, &link.after, &link.wire}) {
            if (pieces == &link.busy && below(random, 2) == 0)
                continue;
            pieces->add({0, static_cast<double>(below(random, 1000)),
                         0.01 * static_cast<double>(below(random, 500))});
            pieces->add({1000, static_cast<double>(below(random, 3000)),
                         0.01 * static_cast<double>(below(random, 300))});
        }
    }
    if (below(random, 2) == 0) {
        auto &link = network.links[BETWEEN_NODES];
        link.depth_ns = static_cast<double>(below(random, 4000));
        link.burst.add({0, 0, 0.01 * static_cast<double>(below(random, 100))});
    }
    return network;
}

} // namespace wulf
