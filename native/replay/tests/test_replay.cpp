// Programs whose time is known by hand, and thousands of random ones against a plain reading of the same
// rules.
#include <cmath>
#include <cstdlib>
#include <random>

#include "made_trace.hpp"
#include "plain.hpp"
#include "replay/curve.hpp"
#include "tests/expect.h"

using namespace wulf;

namespace {

// send 10, receive 20, wire 1 a byte, latency 1000.
Network simple(uint64_t eager_bytes = UINT64_MAX) {
    Network network{.name = "simple", .links = {}, .reduce_per_byte_ns = 0, .compute = 1};
    for (auto &link : network.links) {
        link.latency_ns = 1000;
        link.eager_bytes = eager_bytes;
        link.send.add({0, 10, 0});
        link.receive.add({0, 20, 0});
        link.wire.add({0, 0, 1});
    }
    return network;
}

Plan planned(const MadeTrace &made, uint64_t surely_eager = 0, std::vector<uint32_t> nodes = {}) {
    const auto bytes = made.bytes();
    Trace trace(bytes, "made");
    PlanOptions options;
    options.surely_eager = surely_eager;
    options.nodes = std::move(nodes);
    return plan(trace, options);
}

double time_of(const Plan &plan, const Network &network) {
    Evaluator evaluator(plan);
    return evaluator.evaluate({&network, 1}).front().time_ns;
}

bool is_near(double one, double other) {
    return std::abs(one - other) <= 1e-9 * std::max(1.0, std::abs(other));
}

#define EXPECT_NEAR(got, wanted)                                                                             \
    do {                                                                                                     \
        const double expect_got = (got), expect_wanted = (wanted);                                           \
        if (!is_near(expect_got, expect_wanted)) {                                                           \
            fprintf(stderr, "%s:%d: got %.3f, wanted %.3f\n", __FILE__, __LINE__, expect_got,                \
                    expect_wanted);                                                                          \
            expect_failures++;                                                                               \
        }                                                                                                    \
    } while (0)

template <typename Run> std::string refusal(Run run) {
    try {
        run();
    } catch (const InputError &error) {
        return error.what();
    }
    return "";
}

// --- by hand
// ------------------------------------------------------------------------------------------------

void a_message_at_once() {
    MadeTrace made(2);
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 100, .compute_ns = 5000});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 100});
    made.add(1, {.kind = TRACE_SEND, .peer = 0, .bytes = 100});
    made.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 100});
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty());
    EXPECT_NEAR(time_of(plan, simple()), 5000 + 2 * (10 + 100 + 1000 + 20));
    // By agreement: a question, an answer, and the message.
    EXPECT_NEAR(time_of(plan, simple(99)), 5000 + 2 * (10 + 3 * 1000 + 100 + 20));
    EXPECT_NEAR(time_of(plan, simple(100)), time_of(plan, simple()));
}

void a_late_receiver_holds_up_a_large_message_only() {
    for (const bool is_large : {false, true}) {
        MadeTrace made(2);
        made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = is_large ? 200U : 50U});
        made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 200, .compute_ns = 50000});
        const Plan plan = planned(made);
        const Network network = simple(100);
        Evaluator evaluator(plan);
        const auto found = evaluator.evaluate({&network, 1}).front();
        EXPECT_NEAR(found.rank_ns[0], is_large ? 50000 + 1000 + 200 : 10);
        EXPECT_NEAR(found.rank_ns[1], is_large ? 50000 + 2000 + 200 + 20 : 50020);
    }
}

void interfaces_are_taken_in_turn() {
    MadeTrace made(3);
    for (const int32_t other : {1, 2})
        made.add(0, {.kind = TRACE_SEND, .peer = other, .bytes = 5000});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 5000});
    made.add(2, {.kind = TRACE_RECV, .peer = 0, .bytes = 5000});
    EXPECT_NEAR(time_of(planned(made), simple()), 10 + 5000 + 5000 + 1000 + 20);
    MadeTrace back(3);
    for (const int32_t other : {1, 2}) {
        back.add(static_cast<size_t>(other), {.kind = TRACE_SEND, .peer = 0, .bytes = 5000});
        back.add(0, {.kind = TRACE_RECV, .peer = other, .bytes = 5000});
    }
    EXPECT_NEAR(time_of(planned(back), simple()), 10 + 5000 + 1000 + 5000 + 20);
    // Within a node there is none.
    EXPECT_NEAR(time_of(planned(back, 0, {0, 0, 0}), simple()), 10 + 5000 + 1000 + 20 + 20);
}

void only_a_buffer_lets_both_send_first() {
    MadeTrace made(2);
    for (const int32_t rank : {0, 1}) {
        made.add(static_cast<size_t>(rank), {.kind = TRACE_SEND, .peer = 1 - rank, .bytes = 1000});
        made.add(static_cast<size_t>(rank), {.kind = TRACE_RECV, .peer = 1 - rank, .bytes = 1000});
    }
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty());
    EXPECT(plan.buffered == 1 && plan.largest_buffered == 1000);
    EXPECT_NEAR(time_of(plan, simple()), 10 + 1000 + 1000 + 20);
}

void a_message_that_never_comes_is_named() {
    MadeTrace made(2);
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 8});
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.size() == 1);
    EXPECT_TEXT(plan.unfinished.front().c_str(), "rank 1, record 0: a message that nobody sends");
}

// A task farm: SMPI's replay of it ends in a deadlock.
void who_answers_first_is_taken_as_it_was() {
    MadeTrace made(3);
    for (const int32_t worker : {1, 2}) {
        made.add(
            static_cast<size_t>(worker),
            {.kind = TRACE_SEND, .peer = 0, .bytes = 8, .tag = 7, .compute_ns = worker == 1 ? 90000U : 10U});
        made.add(0, {.kind = TRACE_IRECV,
                     .peer = TRACE_ANY,
                     .bytes = 8,
                     .tag = TRACE_ANY,
                     .request = static_cast<uint32_t>(worker),
                     .flags = TRACE_WILD});
    }
    made.add(0,
             {.kind = TRACE_WAIT_SOME, .peer = 2, .bytes = 8, .tag = 7, .request = 1, .flags = TRACE_WILD});
    made.add(0, {.kind = TRACE_SEND, .peer = 2, .bytes = 8, .tag = 7});
    made.add(2, {.kind = TRACE_RECV, .peer = 0, .bytes = 8, .tag = 7});
    made.add(0,
             {.kind = TRACE_WAIT_SOME, .peer = 1, .bytes = 8, .tag = 7, .request = 2, .flags = TRACE_WILD});
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty());
    EXPECT_NEAR(time_of(plan, simple()), 90000 + 10 + 8 + 1000 + 20);
}

// SMPI's replay does this on all ranks, and ends in a deadlock.
void a_collective_of_some() {
    MadeTrace made(4);
    for (const int32_t rank : {1, 3}) {
        made.communicator(static_cast<size_t>(rank), 2, {1, 3}, rank == 1 ? 0 : 1);
        made.add(static_cast<size_t>(rank), {.kind = TRACE_ALLREDUCE, .bytes = 100, .comm = 2});
    }
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty());
    EXPECT(plan.operations == 4);
    EXPECT_NEAR(time_of(plan, simple()), 10 + 100 + 1000 + 20);
}

void communicators_of_the_same_members_are_told_apart() {
    MadeTrace made(2);
    for (const size_t rank : {0, 1})
        for (const int number : {2, 3})
            made.communicator(rank, static_cast<uint16_t>(number), {0, 1}, static_cast<int32_t>(rank));
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 8, .comm = 3});
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 900, .comm = 2});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 900, .comm = 2});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 8, .comm = 3});
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty());
    // The small one came first, and waited for its receive.
    EXPECT_NEAR(time_of(plan, simple()), 10 + 10 + 900 + 1000 + 20 + 20);
}

// All collectives, for all numbers of ranks, with roots and in all algorithms: everything that is sent is
// received.
void all_collectives_end() {
    for (int kind = TRACE_BARRIER; kind <= TRACE_MAKE_COMMUNICATOR; kind++) {
        const auto collective = static_cast<trace_kind>(kind);
        for (const auto &algorithm : algorithms(collective))
            for (int32_t ranks = 1; ranks <= 13; ranks++)
                for (const uint64_t bytes : {0U, 13U, 100000U}) {
                    MadeTrace made(static_cast<uint32_t>(ranks));
                    const int32_t root = ranks / 2;
                    for (int32_t rank = 0; rank < ranks; rank++) {
                        std::vector<uint64_t> sizes;
                        const bool of_neighbours =
                            kind >= TRACE_NEIGHBOR_ALLGATHER && kind <= TRACE_NEIGHBOR_ALLTOALLW;
                        if (kind == TRACE_ALLTOALLV || kind == TRACE_ALLTOALLW || kind == TRACE_ALLGATHERV ||
                            kind == TRACE_REDUCE_SCATTER || (kind == TRACE_SCATTERV && rank == root))
                            for (int32_t other = 0; other < ranks; other++)
                                sizes.push_back(bytes + static_cast<uint64_t>(other % 3) +
                                                (kind == TRACE_ALLTOALLV ? static_cast<uint64_t>(rank) : 0));
                        if (kind == TRACE_NEIGHBOR_ALLTOALLV || kind == TRACE_NEIGHBOR_ALLTOALLW)
                            sizes = {bytes, bytes + 5};
                        const int32_t left = rank > 0 ? rank - 1 : TRACE_NOBODY,
                                      right = rank + 1 < ranks ? rank + 1 : TRACE_NOBODY;
                        made.communicator(static_cast<size_t>(rank), 2,
                                          [&] {
                                              std::vector<int32_t> all;
                                              for (int32_t one = 0; one < ranks; one++)
                                                  all.push_back(one);
                                              return all;
                                          }(),
                                          rank, {left, right}, {left, right});
                        for (const bool is_begun : {false, true}) {
                            made.add(static_cast<size_t>(rank),
                                     {.kind = collective,
                                      .peer = of_neighbours ? TRACE_NOBODY : root,
                                      .bytes = bytes,
                                      .request = is_begun ? 1U : 0U,
                                      .comm = 2,
                                      .flags = static_cast<uint8_t>(is_begun ? TRACE_NONBLOCKING : 0)},
                                     sizes);
                        }
                        made.add(static_cast<size_t>(rank), {.kind = TRACE_WAIT, .request = 1});
                    }
                    const auto trace_bytes = made.bytes();
                    Trace trace(trace_bytes, "made");
                    PlanOptions options;
                    options.rules = {{collective, 0, 0, algorithm, 4096}};
                    const Plan plan = wulf::plan(trace, options);
                    if (!plan.unfinished.empty() || plan.buffered > 0 || plan.slots > plan.operations) {
                        fprintf(stderr, "%s by %s of %d ranks, %d B: %s\n", kind_name(collective),
                                algorithm.c_str(), ranks, static_cast<int>(bytes),
                                plan.unfinished.empty() ? "buffered" : plan.unfinished.front().c_str());
                        expect_failures++;
                    }
                }
    }
}

// Every rank gets all that it is to get: what a tree or ring moves in all, against what is known of it.
void collectives_move_what_they_must() {
    const auto moved = [](trace_kind kind, const char *algorithm, int32_t ranks, uint64_t bytes) {
        uint64_t sum = 0;
        for (int32_t rank = 0; rank < ranks; rank++) {
            std::vector<Move> moves;
            expand({.kind = kind, .rank = rank, .ranks = ranks, .root = 1, .bytes = bytes, .sizes = {}},
                   {{kind, 0, 0, algorithm, 0}}, moves);
            for (const auto &move : moves)
                if (move.kind == Move::SEND || move.kind == Move::BEGIN_SEND)
                    sum += move.bytes;
        }
        return sum;
    };
    for (const int32_t ranks : {2, 3, 4, 7, 8, 12}) {
        const auto others = static_cast<uint64_t>(ranks - 1), all = static_cast<uint64_t>(ranks);
        for (const char *way : {"binomial", "pipeline", "basic_linear"})
            EXPECT(moved(TRACE_BCAST, way, ranks, 1000) == others * 1000);
        for (const char *way : {"ring", "bruck", "neighbor", "linear"})
            EXPECT(moved(TRACE_ALLGATHER, way, ranks, 1000) == others * all * 1000);
        for (const char *way : {"linear", "pairwise"})
            EXPECT(moved(TRACE_ALLTOALL, way, ranks, 1000) == others * all * 1000);
        EXPECT(moved(TRACE_ALLREDUCE, "ring", ranks, 12000) == 2 * others * 12000);
        EXPECT(moved(TRACE_REDUCE_SCATTER_BLOCK, "ring", ranks, 1000) == others * all * 1000);
        EXPECT(moved(TRACE_SCAN, "linear", ranks, 1000) == others * 1000);
    }
    EXPECT(moved(TRACE_ALLREDUCE, "rabenseifner", 8, 8000) == 8 * 2 * 7000);
}

void what_cannot_be_replayed_is_refused_by_name() {
    MadeTrace made(2);
    made.is_unsound(1, TRACE_ONE_SIDED);
    EXPECT(refusal([&] { planned(made); }).find("rank 1 uses one-sided communication") == 0);
}

void wrong_records_are_named() {
    MadeTrace peer(2);
    peer.add(0, {.kind = TRACE_SEND, .peer = 5, .bytes = 8});
    EXPECT_TEXT(refusal([&] { planned(peer); }).c_str(),
                "made: rank 0: record 0: rank 5 of a communicator of 2");
    MadeTrace comm(2);
    comm.add(1, {.kind = TRACE_BARRIER, .comm = 9});
    EXPECT_TEXT(refusal([&] { planned(comm); }).c_str(),
                "made: rank 1: record 0: a communicator that was never made: number 9");
    MadeTrace whole(2);
    whole.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 8});
    MadeTrace request(2);
    request.add(0, {.kind = TRACE_ISEND, .peer = 1, .bytes = 8, .request = 1U << 23});
    EXPECT_TEXT(refusal([&] { planned(request); }).c_str(), "made: rank 0: record 0: request 8388608");
    MadeTrace number(2);
    number.communicator(0, 60000, {0, 1}, 0);
    EXPECT_TEXT(refusal([&] { planned(number); }).c_str(),
                "made: rank 0: record 0: a communicator of number 60000");
    auto bytes = whole.bytes();
    trace_part first{};
    std::memcpy(&first, bytes.data() + sizeof(trace_container), sizeof first);
    auto twice = bytes;
    const trace_part rest{first.offset, bytes.size() - first.offset};
    std::memcpy(twice.data() + sizeof(trace_container) + sizeof first, &rest, sizeof rest);
    EXPECT_TEXT(refusal([&] { Trace(twice, "twice"); }).c_str(),
                "twice: rank 1: its stream is also another rank's");
    for (size_t length = 0; length < bytes.size(); length += 16)
        EXPECT(!refusal([&] { Trace({bytes.data(), length}, "cut"); }).empty());
}

// --- at random
// ----------------------------------------------------------------------------------------------

using Random = std::mt19937_64;

uint64_t below(Random &random, uint64_t limit) { return random() % limit; }

// Messages and collectives in one order for all, so that it ends whatever the network is.
MadeTrace random_program(Random &random, uint32_t ranks) {
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
    for (uint64_t event = 0; event < events; event++) {
        if (below(random, 8) == 0) {
            static const trace_kind kinds[] = {
                TRACE_BARRIER, TRACE_BCAST,  TRACE_ALLREDUCE, TRACE_ALLGATHER, TRACE_ALLTOALL,
                TRACE_REDUCE,  TRACE_GATHER, TRACE_SCATTER,   TRACE_SCAN,      TRACE_REDUCE_SCATTER_BLOCK};
            const auto kind = kinds[below(random, std::size(kinds))];
            const uint64_t bytes = below(random, 2000);
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

Network random_network(Random &random) {
    Network network{.name = "random",
                    .links = {},
                    .reduce_per_byte_ns = 0.1 * static_cast<double>(below(random, 10)),
                    .compute = 0.5 + 0.1 * static_cast<double>(below(random, 10))};
    for (auto &link : network.links) {
        link.latency_ns = static_cast<double>(below(random, 20000));
        link.eager_bytes = below(random, 4000);
        for (auto *pieces : {&link.send, &link.receive, &link.wire}) {
            pieces->add({0, static_cast<double>(below(random, 1000)),
                         0.01 * static_cast<double>(below(random, 500))});
            pieces->add({1000, static_cast<double>(below(random, 3000)),
                         0.01 * static_cast<double>(below(random, 300))});
        }
    }
    return network;
}

void random_programs_are_as_plain_reading_says(uint64_t programs) {
    for (uint64_t seed = 0; seed < programs && expect_failures < 5; seed++) {
        Random random(seed);
        const auto ranks = static_cast<uint32_t>(2 + below(random, 6));
        const MadeTrace made = random_program(random, ranks);
        std::vector<uint32_t> nodes;
        for (uint32_t rank = 0; rank < ranks; rank++)
            nodes.push_back(below(random, 2) == 0 ? rank : rank / 2);
        const Plan plan = planned(made, 0, nodes);
        EXPECT(plan.unfinished.empty());
        std::vector<Network> networks;
        for (size_t lane = 0; lane < LANES; lane++)
            networks.push_back(random_network(random));
        Evaluator evaluator(plan);
        const auto found = evaluator.evaluate(networks);
        const auto paths = evaluator.paths(networks);
        for (size_t lane = 0; lane < LANES; lane++) {
            Plain plain(plan, networks[lane]);
            EXPECT_NEAR(found[lane].time_ns, plain.time_ns());
            // The time is what its longest path consists of.
            EXPECT_NEAR(paths[lane].time_ns(networks[lane]), found[lane].time_ns);
        }
        // Whatever is between two networks takes no longer than what is between their times (convex), at the
        // same limits of eager messages.
        Network one = networks[0], other = networks[0], middle = networks[0];
        other.links[BETWEEN_NODES].latency_ns *= 3;
        middle.links[BETWEEN_NODES].latency_ns *= 2;
        EXPECT(time_of(plan, middle) <= (time_of(plan, one) + time_of(plan, other)) / 2 * (1 + 1e-12));
        // The curve is exact where it was not asked.
        const auto curve = latency_curve(evaluator, one, 0, 50000);
        for (const double latency : {0.0, 123.0, 5000.0, 20000.0, 49999.0}) {
            one.links[BETWEEN_NODES].latency_ns = latency;
            EXPECT_NEAR(at(curve, latency), time_of(plan, one));
        }
        if (expect_failures > 0)
            fprintf(stderr, "  … by the program of seed %d\n", static_cast<int>(seed));
    }
}

} // namespace

int main(int count, char **words) {
    a_message_at_once();
    a_late_receiver_holds_up_a_large_message_only();
    interfaces_are_taken_in_turn();
    only_a_buffer_lets_both_send_first();
    a_message_that_never_comes_is_named();
    who_answers_first_is_taken_as_it_was();
    a_collective_of_some();
    communicators_of_the_same_members_are_told_apart();
    all_collectives_end();
    collectives_move_what_they_must();
    what_cannot_be_replayed_is_refused_by_name();
    wrong_records_are_named();
    random_programs_are_as_plain_reading_says(count > 1 ? std::strtoull(words[1], nullptr, 10) : 10000);
    return EXPECT_STATUS();
}
