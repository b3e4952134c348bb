// Programs whose time is known by hand, and what is refused.
#include <cmath>
#include <numeric>

#include "made_trace.hpp"
#include "planned.hpp"
#include "replay/openmpi.hpp"
#include "replay/timeline.hpp"
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

// Its receive may have begun before anybody knew that it must be waited for.
void a_small_message_may_have_to_be_agreed_on() {
    MadeTrace made(2);
    for (const uint64_t late : {0U, 70000U}) {
        made.add(1, {.kind = TRACE_IRECV, .peer = 0, .bytes = 8, .request = 1, .compute_ns = late});
        made.add(1, {.kind = TRACE_WAIT, .request = 1});
        made.add(0, {.kind = TRACE_SSEND, .peer = 1, .bytes = 8, .compute_ns = 50000 - late / 2});
        made.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 8});
        made.add(1, {.kind = TRACE_SEND, .peer = 0, .bytes = 8});
    }
    for (const uint64_t surely_eager : {0U, 4096U})
        EXPECT(planned(made, surely_eager).unfinished.empty());
    EXPECT_NEAR(time_of(planned(made, UINT64_MAX), simple()), time_of(planned(made, 4096), simple()));
}

// It goes at once, and its sender waits until the receiver has said that it has come.
void a_small_synchronous_message_is_answered() {
    Network network = simple();
    network.links[BETWEEN_NODES].answering_ns = 300;
    network.links[BETWEEN_NODES].answered_ns = 700;
    for (const double late : {0.0, 50000.0}) {
        MadeTrace made(2);
        made.add(0, {.kind = TRACE_SSEND, .peer = 1, .bytes = 8});
        made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 8, .compute_ns = static_cast<uint64_t>(late)});
        const Plan plan = planned(made, 4096);
        EXPECT(plan.unfinished.empty());
        Evaluator evaluator(plan);
        const auto found = evaluator.evaluate({&network, 1}).front();
        const double met = std::max(late, 10.0 + 8 + 1000);
        EXPECT_NEAR(found.rank_ns[0], met + 700 + 1000);
        EXPECT_NEAR(found.rank_ns[1], met + 300 + 20);
    }
}

// Both answer while they wait for an answer themselves.
void two_that_send_to_each_other_synchronously_do_not_wait_for_ever() {
    MadeTrace made(2);
    for (const int32_t rank : {0, 1}) {
        made.add(static_cast<size_t>(rank),
                 {.kind = TRACE_IRECV, .peer = 1 - rank, .bytes = 8, .request = 1});
        made.add(static_cast<size_t>(rank), {.kind = TRACE_SSEND, .peer = 1 - rank, .bytes = 8});
        made.add(static_cast<size_t>(rank), {.kind = TRACE_WAIT, .request = 1});
    }
    const Plan plan = planned(made, 4096);
    EXPECT(plan.unfinished.empty() && plan.buffered == 0);
    EXPECT_NEAR(time_of(plan, simple()), 10 + 8 + 1000 + 1000 + 20);
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

void a_sender_that_waits_anyhow_does_not_feel_the_rest_of_its_send() {
    Network network = simple();
    network.links[BETWEEN_NODES].after.add({0, 500, 0});
    for (const uint64_t eager : {UINT64_MAX, uint64_t{0}}) {
        network.links[BETWEEN_NODES].eager_bytes = eager;
        const double way = eager > 0 ? 10 + 100 + 1000 + 20 : 10 + 3 * 1000 + 100 + 20;
        MadeTrace there_and_back(2), both(2);
        there_and_back.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 100});
        there_and_back.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 100});
        there_and_back.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 100});
        there_and_back.add(1, {.kind = TRACE_SEND, .peer = 0, .bytes = 100});
        // The last sender ends when its call does.
        EXPECT_NEAR(time_of(planned(there_and_back), network),
                    std::max(2 * way, 2 * way - (eager > 0 ? 1120 : 1020) + 500));
        for (const size_t rank : {0U, 1U}) {
            const auto peer = static_cast<int32_t>(1 - rank);
            both.add(rank, {.kind = TRACE_IRECV, .peer = peer, .bytes = 100, .request = 1});
            both.add(rank, {.kind = TRACE_ISEND, .peer = peer, .bytes = 100, .request = 2});
            both.add(rank, {.kind = TRACE_WAIT, .peer = peer, .bytes = 100, .request = 1});
            both.add(rank, {.kind = TRACE_WAIT, .peer = peer, .bytes = 100, .request = 2});
        }
        // One that was agreed on has gone a latency and a receive before the other has come.
        EXPECT_NEAR(time_of(planned(both), network), way);
        network.links[BETWEEN_NODES].after = {};
        network.links[BETWEEN_NODES].after.add({0, 2000, 0});
        EXPECT_NEAR(time_of(planned(both), network), eager > 0 ? 10 + 2000 + 20 : way - 1020 + 2000);
        network.links[BETWEEN_NODES].after = {};
        network.links[BETWEEN_NODES].after.add({0, 500, 0});
    }
}

// Each message that was agreed on waits for itself: several at once wait together.
void messages_at_once_wait_together() {
    Network network = simple();
    network.links[BETWEEN_NODES].eager_bytes = 0;
    network.links[BETWEEN_NODES].after.add({0, 5000, 0});
    for (const uint32_t many : {1U, 2U, 5U}) {
        MadeTrace made(2);
        for (const size_t rank : {0U, 1U}) {
            const auto peer = static_cast<int32_t>(1 - rank);
            for (uint32_t one = 0; one < many; one++) {
                made.add(rank, {.kind = TRACE_IRECV, .peer = peer, .bytes = 100, .request = 2 * one + 1});
                made.add(rank, {.kind = TRACE_ISEND, .peer = peer, .bytes = 100, .request = 2 * one + 2});
            }
            for (uint32_t request = 1; request <= 2 * many; request++)
                made.add(rank, {.kind = TRACE_WAIT, .peer = peer, .bytes = 100, .request = request});
        }
        // Bytes go one after the other; the first goes when it is agreed on, others wait for those before
        // only.
        EXPECT_NEAR(time_of(planned(made), network), 10 + 2000 + many * 100 + 5000);
    }
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

void who_waits_in_a_circle_is_told_from_who_waits_for_nobody() {
    MadeTrace made(3);
    for (const int32_t rank : {0, 1}) // each first receives from the other
        made.add(static_cast<size_t>(rank), {.kind = TRACE_RECV, .peer = 1 - rank, .bytes = 8});
    EXPECT_TEXT(planned(made).unfinished.front().c_str(),
                "rank 0, record 0: it waits for rank 1, which waits, too");
    MadeTrace other(3);
    other.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 8});
    other.add(1, {.kind = TRACE_RECV, .peer = 2, .bytes = 8});
    EXPECT_TEXT(planned(other).unfinished.front().c_str(), "rank 1, record 0: a message that nobody sends");
}

void messages_that_nobody_receives_are_counted() {
    MadeTrace made(2);
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{1} << 30})
        made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = bytes, .tag = 3});
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty() && plan.buffered == 0);
    EXPECT(plan.lost == 2 && plan.lost_from == 0 && plan.lost_to == 1);
}

void ranks_that_call_different_collectives_are_told() {
    MadeTrace made(2);
    made.add(0, {.kind = TRACE_BCAST, .peer = 0, .bytes = 8});
    made.add(1, {.kind = TRACE_BARRIER, .peer = TRACE_NOBODY});
    EXPECT(!planned(made).unfinished.empty());
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

void ranks_work_alone_for_communicators() {
    MadeTrace made(2);
    for (const size_t rank : {0, 1})
        for (int time = 0; time < 2; time++)
            made.add(rank, {.kind = TRACE_MAKE_COMMUNICATOR, .bytes = 8});
    const Plan plan = planned(made);
    EXPECT(plan.unfinished.empty());
    Network network = simple();
    const double messages = time_of(plan, network);
    network.making_ns = 7000;
    EXPECT_NEAR(time_of(plan, network), messages + 2 * 7000);
    EXPECT_NEAR(timeline(plan, network, {0, 1, 1, 1}).time_ns, messages + 2 * 7000);
    // Both send at first, and are connected at once.
    network.connecting_ns = 90000;
    EXPECT_NEAR(time_of(plan, network), messages + 2 * 7000);
}

// One of two waits for its connection where they make a communicator with neighbours first, whoever is
// planned first.
void ranks_that_load_a_part_of_their_library_do_not_meet_at_first() {
    for (const bool has_neighbours : {true, false})
        for (const bool are_connected : {true, false}) {
            MadeTrace made(2);
            for (const int32_t rank : {0, 1}) {
                const int32_t other = 1 - rank;
                if (are_connected)
                    made.add(static_cast<size_t>(rank), {.kind = TRACE_BARRIER});
                made.add(static_cast<size_t>(rank), {.kind = TRACE_MAKE_COMMUNICATOR, .bytes = 8});
                const std::vector<int32_t> beside(has_neighbours ? 1 : 0, other);
                made.communicator(static_cast<size_t>(rank), 2, {0, 1}, rank, beside, beside);
            }
            const Plan plan = planned(made);
            Network network = simple();
            const double at_once = time_of(plan, network);
            network.connecting_ns = 90000;
            const double waits = time_of(plan, network) - at_once;
            EXPECT_NEAR(waits, has_neighbours && !are_connected ? 90000 : 0);
        }
}

// Who has heard of a rank of another node is connected to it.
void who_is_sent_to_does_not_wait_for_a_connection_of_its_own() {
    MadeTrace made(2);
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 100});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 100});
    made.add(1, {.kind = TRACE_SEND, .peer = 0, .bytes = 100});
    made.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 100});
    Network network = simple();
    network.connecting_ns = 90000;
    EXPECT_NEAR(time_of(planned(made), network), 90000 + 2 * (10 + 100 + 1000 + 20));
    EXPECT_NEAR(time_of(planned(made, 0, {0, 0}), network), 2 * (10 + 100 + 1000 + 20));
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
            for (const int32_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 17, 21})
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
                                      .bytes = bytes + (kind == TRACE_SCATTERV ? rank % 3U : 0U),
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
                    if (!plan.unfinished.empty() || plan.buffered > 0 || plan.slots > plan.operations + 1) {
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
        for (const char *way :
             {"binomial", "binomial_nearest_first", "binary_tree", "knomial", "pipeline", "basic_linear"})
            EXPECT(moved(TRACE_BCAST, way, ranks, 1000) == others * 1000);
        for (const char *way : {"binomial", "binary", "pipeline", "linear"})
            EXPECT(moved(TRACE_REDUCE, way, ranks, 1000) == others * 1000);
        for (const char *way : {"linear", "linear_sync", "basic_linear"})
            EXPECT(moved(TRACE_GATHER, way, ranks, 1000) == others * 1000);
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

// Which algorithm a library takes of itself, and that what is asked for stands before it.
void libraries_decide_as_they_do() {
    const auto chosen = [](const char *library, trace_kind kind, bool is_begun, uint32_t ranks,
                           uint64_t bytes) {
        CollectiveRules rules;
        rules.add(rules_of(library));
        const auto *choice = rules.find(kind, is_begun, ranks, bytes);
        return choice == nullptr ? std::string() : algorithms(kind)[choice->algorithm];
    };
    for (const char *library : {"Open MPI v4.1.4, package: Debian OpenMPI", "Open MPI v5.0.8"}) {
        EXPECT(chosen(library, TRACE_BCAST, false, 4, 65536) == "basic_linear");
        EXPECT(chosen(library, TRACE_BCAST, false, 4, 8191) == "binomial_nearest_first");
        EXPECT(chosen(library, TRACE_ALLREDUCE, false, 4, 8192) == "rabenseifner");
        EXPECT(chosen(library, TRACE_ALLREDUCE, true, 4, 8192) == "binomial");
        EXPECT(chosen(library, TRACE_SCATTER, false, 4, 40000) == "linear_nb");
    }
    for (const char *library : {"", "Open MPI v4.0.3", "Open MPI v4.10.0", "MPICH Version: 4.0.2"})
        EXPECT(chosen(library, TRACE_BCAST, false, 4, 65536).empty());
    CollectiveRules rules;
    rules.add(rules_of("Open MPI v4.1.4"));
    rules.add({TRACE_BCAST, 0, 1000, "pipeline", 512});
    const auto *asked = rules.find(TRACE_BCAST, false, 4, 65536);
    EXPECT(asked != nullptr && asked->segment_bytes == 512);
    const auto *own = rules.find(TRACE_BCAST, false, 4, 999);
    EXPECT(own != nullptr && own->segment_bytes == 0);
}

// Parts that differ are on both sides of a size from which another algorithm is taken.
void ranks_with_other_parts_decide_alike() {
    for (const trace_kind kind : {TRACE_ALLGATHERV, TRACE_REDUCE_SCATTER}) {
        MadeTrace made(3);
        for (const size_t rank : {size_t{0}, size_t{1}, size_t{2}})
            made.add(rank, {.kind = kind, .peer = TRACE_NOBODY, .bytes = rank == 0 ? 1U : 100000U},
                     {1, 100000, 100000});
        EXPECT(planned(made).unfinished.empty());
    }
}

double sum(const std::vector<double> &values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Rank 0 computes 5000 ns and sends, rank 1 waits for that, and answers after 2000 ns.
void time_is_accounted_for_by_rank_and_activity() {
    MadeTrace made(2);
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 100, .compute_ns = 5000});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 100});
    made.add(1, {.kind = TRACE_SEND, .peer = 0, .bytes = 100, .compute_ns = 2000});
    made.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 100});
    const Plan plan = planned(made);
    const double way = 10 + 100 + 1000, whole = 5000 + way + 20 + 2000 + way + 20;
    const auto found = timeline(plan, simple(), {0, whole, 2, 10});
    EXPECT_NEAR(found.time_ns, whole);
    EXPECT(found.rows.size() == 2);
    const auto &one = found.rows[0].cells, &other = found.rows[1].cells;
    EXPECT_NEAR(sum(one[COMPUTING]) * whole / 10, 5000);
    EXPECT_NEAR(sum(one[OF_MESSAGES]) * whole / 10, 10 + 20);
    EXPECT_NEAR(sum(one[WAITING]) * whole / 10, whole - 5000 - 30);
    EXPECT_NEAR(one[COMPUTING][0], 1);
    EXPECT_NEAR(other[WAITING][0], 1);
    EXPECT_NEAR(sum(other[WAITING]) * whole / 10, 5000 + way);
    // Rank 1 ends before rank 0, and is nothing from there on.
    EXPECT_NEAR(other[COMPUTING][9] + other[OF_MESSAGES][9] + other[WAITING][9], 0);
    // Both in one row are the mean of them.
    const auto together = timeline(plan, simple(), {0, whole, 1, 10});
    EXPECT(together.rows.size() == 1 && together.rows[0].last_rank == 1);
    EXPECT_NEAR(together.rows[0].cells[WAITING][0], 0.5);
    // Rank 0's second half of steps begins when it has sent.
    EXPECT_NEAR(found.middle_ns, 5010);
    const auto middle = timeline(plan, simple(), {found.middle_ns, 1000, 2, 1});
    EXPECT_NEAR(middle.rows[0].cells[WAITING][0], 1);
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
    EXPECT_TEXT(refusal([&] { planned(request); }).c_str(),
                "made: rank 0: record 0: damaged: a request of number 8388608");
    MadeTrace number(2);
    number.communicator(0, 60000, {0, 1}, 0);
    EXPECT_TEXT(refusal([&] { planned(number); }).c_str(),
                "made: rank 0: record 0: a communicator of number 60000");
    MadeTrace longer(2);
    longer.add(0, {.kind = TRACE_RECV, .peer = 1, .bytes = 8});
    longer.add(1, {.kind = TRACE_SEND, .peer = 0, .bytes = 100000});
    EXPECT_TEXT(refusal([&] { planned(longer, 4096); }).c_str(),
                "a message of 100000 B from rank 1 to rank 0 is longer than its receive");
    auto bytes = whole.bytes();
    trace_part first{};
    std::memcpy(&first, bytes.data() + sizeof(trace_container), sizeof first);
    auto unknown = bytes;
    unknown[first.offset + TRACE_HEADER_BYTES + offsetof(trace_record, kind)] = std::byte{235};
    EXPECT_TEXT(refusal([&] { planned(unknown); }).c_str(),
                "made: rank 0: record 0: of kind 235, which there is not");
    auto twice = bytes;
    const trace_part rest{first.offset, bytes.size() - first.offset};
    std::memcpy(twice.data() + sizeof(trace_container) + sizeof first, &rest, sizeof rest);
    EXPECT_TEXT(refusal([&] { Trace(twice, "twice"); }).c_str(),
                "twice: rank 1: its stream is also another rank's");
    for (size_t length = 0; length < bytes.size(); length += 16)
        EXPECT(!refusal([&] { Trace({bytes.data(), length}, "cut"); }).empty());
}

} // namespace

int main() {
    a_message_at_once();
    a_late_receiver_holds_up_a_large_message_only();
    a_small_message_may_have_to_be_agreed_on();
    a_small_synchronous_message_is_answered();
    two_that_send_to_each_other_synchronously_do_not_wait_for_ever();
    interfaces_are_taken_in_turn();
    a_sender_that_waits_anyhow_does_not_feel_the_rest_of_its_send();
    messages_at_once_wait_together();
    only_a_buffer_lets_both_send_first();
    a_message_that_never_comes_is_named();
    who_waits_in_a_circle_is_told_from_who_waits_for_nobody();
    messages_that_nobody_receives_are_counted();
    ranks_that_call_different_collectives_are_told();
    who_answers_first_is_taken_as_it_was();
    a_collective_of_some();
    ranks_work_alone_for_communicators();
    who_is_sent_to_does_not_wait_for_a_connection_of_its_own();
    ranks_that_load_a_part_of_their_library_do_not_meet_at_first();
    communicators_of_the_same_members_are_told_apart();
    all_collectives_end();
    collectives_move_what_they_must();
    libraries_decide_as_they_do();
    ranks_with_other_parts_decide_alike();
    time_is_accounted_for_by_rank_and_activity();
    what_cannot_be_replayed_is_refused_by_name();
    wrong_records_are_named();
    return EXPECT_STATUS();
}
