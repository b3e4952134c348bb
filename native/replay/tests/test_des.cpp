// Engine B: programs whose time is known by hand, and thousands of random ones of which engine A says the
// same.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "made_trace.hpp"
#include "replay/des.hpp"
#include "replay/maxplus.hpp"
#include "tests/expect.h"

using namespace wulf;

namespace {

using Nodes = std::vector<uint32_t>;

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

Plan planned(Trace &trace, const Nodes &nodes) {
    PlanOptions options;
    options.nodes = nodes;
    options.keeps_records = true;
    return plan(trace, options);
}

void add(Program &program, const MadeTrace &made, const Nodes &nodes = {}) {
    const auto bytes = made.bytes();
    Trace trace(bytes, "made");
    const Plan plan = planned(trace, nodes);
    EXPECT(plan.unfinished.empty());
    append(program, "made", plan, trace, nodes);
}

Outcome replayed(const Program &program, const Network &network, uint64_t seed = 1,
                 const Topology &topology = {}) {
    return Simulator(program, topology).run(network, seed);
}

Outcome replayed(const MadeTrace &made, const Network &network, const Nodes &nodes = {}, uint64_t seed = 1) {
    Program program;
    add(program, made, nodes);
    return replayed(program, network, seed);
}

double statically(const MadeTrace &made, const Network &network, const Nodes &nodes = {}) {
    const auto bytes = made.bytes();
    Trace trace(bytes, "made");
    const Plan plan = planned(trace, nodes);
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

// --- messages
// -----------------------------------------------------------------------------------------------

void one_message_is_as_engine_a_has_it() {
    for (const bool is_large : {false, true}) {
        MadeTrace made(2);
        made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = is_large ? 200U : 50U, .compute_ns = 5000});
        made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 200});
        const double wanted = is_large ? 5000 + 10 + 3 * 1000 + 200 + 20 : 5000 + 10 + 1000 + 50 + 20;
        EXPECT_NEAR(replayed(made, simple(100)).time_ns, wanted);
        EXPECT_NEAR(statically(made, simple(100)), wanted);
    }
}

void a_late_receiver_holds_up_a_large_message_only() {
    for (const bool is_large : {false, true}) {
        MadeTrace made(2);
        made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = is_large ? 200U : 50U});
        made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 200, .compute_ns = 50000});
        const auto found = replayed(made, simple(100));
        EXPECT_NEAR(found.rank_ns[0], is_large ? 50000 + 1000 + 200 : 10);
        EXPECT_NEAR(found.rank_ns[1], is_large ? 50000 + 2000 + 200 + 20 : 50020);
    }
}

void a_large_message_takes_as_long_in_pieces() {
    MadeTrace made(2);
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 1000000});
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 1000000});
    EXPECT_NEAR(replayed(made, simple()).time_ns, 10 + 1000 + 1000000 + 20);
}

void only_a_buffer_lets_both_send_first() {
    MadeTrace made(2);
    for (const int32_t rank : {0, 1}) {
        made.add(static_cast<size_t>(rank), {.kind = TRACE_SEND, .peer = 1 - rank, .bytes = 1000});
        made.add(static_cast<size_t>(rank), {.kind = TRACE_RECV, .peer = 1 - rank, .bytes = 1000});
    }
    // One of them is as much as they need.
    EXPECT_NEAR(replayed(made, simple()).time_ns, 10 + 1000 + 1000 + 20);
    EXPECT_NEAR(replayed(made, simple(100)).time_ns, statically(made, simple(100)));
}

void a_collective_of_some() {
    MadeTrace made(4);
    for (const int32_t rank : {1, 3}) {
        made.communicator(static_cast<size_t>(rank), 2, {1, 3}, rank == 1 ? 0 : 1);
        made.add(static_cast<size_t>(rank), {.kind = TRACE_ALLREDUCE, .bytes = 100, .comm = 2});
    }
    EXPECT_NEAR(replayed(made, simple()).time_ns, 10 + 100 + 1000 + 20);
}

void a_message_that_nobody_takes_goes_all_the_same() {
    MadeTrace made(2);
    made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 100});
    made.add(1, {.kind = TRACE_PHASE, .compute_ns = 77});
    EXPECT_NEAR(replayed(made, simple()).time_ns, 77);
}

// --- what is shared
// -----------------------------------------------------------------------------------------

// Many to one: the receiver's interface takes one after the other.
void incast_takes_as_long_as_all_messages_together() {
    for (const uint64_t bytes : {5000U, 500000U})
        for (const int32_t senders : {2, 7, 30}) {
            MadeTrace made(static_cast<uint32_t>(senders) + 1);
            for (int32_t sender = 1; sender <= senders; sender++) {
                made.add(static_cast<size_t>(sender), {.kind = TRACE_SEND, .peer = 0, .bytes = bytes});
                made.add(0, {.kind = TRACE_RECV, .peer = sender, .bytes = bytes});
            }
            const double together = static_cast<double>(bytes) * senders;
            const double time = replayed(made, simple()).time_ns;
            EXPECT(time >= together + 10 + 1000 + 20);
            EXPECT(time <= together + 10 + 1000 + 20 * senders);
        }
}

MadeTrace stream_of(uint64_t bytes, int messages) {
    MadeTrace made(2);
    for (int message = 0; message < messages; message++) {
        made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = bytes});
        made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = bytes});
    }
    return made;
}

// Each sender lets its message through as a burst; what they are shaped to together is the receiver's rate.
// What one interface has shaped passes another without a wait.
void a_shaped_interface_receives_at_its_rate() {
    Network network = simple();
    network.links[BETWEEN_NODES].depth_ns = 1000;
    for (const bool is_one_sender : {false, true}) {
        MadeTrace made(4);
        for (int32_t message = 1; message <= 3; message++) {
            const int32_t from = is_one_sender ? 1 : message;
            const auto computes = static_cast<uint64_t>(message); // in that order
            made.add(static_cast<size_t>(from),
                     {.kind = TRACE_SEND, .peer = 0, .bytes = 1000, .compute_ns = computes});
            made.add(0, {.kind = TRACE_RECV, .peer = from, .bytes = 1000});
        }
        const double wanted = 1 + 10 + 1000 + 2 * 1000 + 20;
        EXPECT_NEAR(replayed(made, network).time_ns, wanted);
        if (is_one_sender)
            EXPECT_NEAR(statically(made, network), wanted);
    }
}

void two_programs_slow_each_other() {
    const MadeTrace made = stream_of(1000000, 20);
    const double alone = replayed(made, simple()).time_ns;
    Program program;
    add(program, made, {0, 1});
    add(program, made, {0, 2}); // one interface sends for both
    const auto found = replayed(program, simple());
    for (const double time : found.part_ns)
        EXPECT(time > 1.95 * alone && time < 2.05 * alone);
    Program into_one;
    add(into_one, made, {0, 1});
    add(into_one, made, {2, 1}); // one interface receives for both
    for (const double time : replayed(into_one, simple()).part_ns)
        EXPECT(time > 1.95 * alone && time < 2.05 * alone);
    Program apart;
    add(apart, made, {0, 1});
    add(apart, made, {2, 3});
    EXPECT_NEAR(replayed(apart, simple()).time_ns, alone);
    Program against; // an interface sends and receives at the same time
    add(against, made, {0, 1});
    add(against, made, {1, 0});
    EXPECT_NEAR(replayed(against, simple()).time_ns, alone);
}

// A short message of one program does not wait for a whole long one of another.
void long_messages_let_short_ones_through() {
    Program program;
    add(program, stream_of(100 * PIECE_BYTES, 1), {0, 1});
    MadeTrace made = stream_of(100, 1);
    add(program, made, {0, 2});
    const auto found = replayed(program, simple());
    EXPECT(found.part_ns[1] <= 2 * PIECE_BYTES + 2000);
    EXPECT(found.part_ns[0] >= 100 * PIECE_BYTES + 100);
}

void ranks_of_a_node_share_its_interface() {
    MadeTrace made(4);
    for (const int32_t rank : {0, 1}) {
        made.add(static_cast<size_t>(rank), {.kind = TRACE_SEND, .peer = rank + 2, .bytes = 5000});
        made.add(static_cast<size_t>(rank) + 2, {.kind = TRACE_RECV, .peer = rank, .bytes = 5000});
    }
    EXPECT_NEAR(replayed(made, simple()).time_ns, 10 + 5000 + 1000 + 20);
    EXPECT_NEAR(replayed(made, simple(), {0, 0, 1, 2}).time_ns, 10 + 2 * 5000 + 1000 + 20);
    EXPECT_NEAR(replayed(made, simple(), {0, 1, 2, 2}).time_ns, 10 + 2 * 5000 + 1000 + 20);
    // Within a node nothing is shared.
    EXPECT_NEAR(replayed(made, simple(), {0, 1, 0, 1}).time_ns, 10 + 5000 + 1000 + 20);
}

Topology topology_of(const std::string &text, uint32_t nodes) {
    std::istringstream input(text);
    return read_topology(input, "t", nodes);
}

constexpr const char *TWO_SWITCHES = "# half as fast as an interface\n"
                                     "uplink left 5e8\nuplink right 5e8\n"
                                     "node 0 left\nnode 1 left\nnode 2 right\nnode 3 right\n";

void uplinks_are_shared() {
    const Topology topology = topology_of(TWO_SWITCHES, 4);
    Program one;
    add(one, stream_of(PIECE_BYTES, 1), {0, 2});
    EXPECT_NEAR(replayed(one, simple(), 1, topology).time_ns, 10 + 2 * PIECE_BYTES + 1000 + 20);
    Program near;
    add(near, stream_of(PIECE_BYTES, 1), {0, 1});
    EXPECT_NEAR(replayed(near, simple(), 1, topology).time_ns, 10 + PIECE_BYTES + 1000 + 20);
    Program both;
    add(both, stream_of(1000000, 20), {0, 2});
    add(both, stream_of(1000000, 20), {1, 3});
    for (const double time : replayed(both, simple(), 1, topology).part_ns)
        EXPECT(time > 3.9 * 20e6 && time < 4.1 * 20e6);
    Program ways; // up and down are apart
    add(ways, stream_of(1000000, 20), {0, 2});
    add(ways, stream_of(1000000, 20), {3, 1});
    for (const double time : replayed(ways, simple(), 1, topology).part_ns)
        EXPECT(time > 1.95 * 20e6 && time < 2.05 * 20e6);
}

void switches_of_switches_are_climbed() {
    const Topology topology = topology_of("uplink a 1e9 x\nuplink b 1e9 x\nuplink c 1e9 y\nuplink x 1e9\n"
                                          "uplink y 1e9\nnode 0 a\nnode 1 b\nnode 2 c\nnode 3 x\n",
                                          4);
    EXPECT(topology.route(0, 0).empty());
    EXPECT(topology.route(0, 1).size() == 2);
    EXPECT(topology.route(0, 2).size() == 4);
    EXPECT(topology.route(0, 3).size() == 1);
    EXPECT(topology.route(3, 0).size() == 1 && topology.route(3, 0)[0] != topology.route(0, 3)[0]);
}

void wrong_topologies_are_named() {
    const auto said = [](const char *text, uint32_t nodes) {
        return refusal([&] { topology_of(text, nodes); });
    };
    EXPECT_TEXT(said("uplink a 1e9\nnode 0 a\n", 2).c_str(), "t: node 1 is at no switch");
    EXPECT_TEXT(said("uplink a\n", 1).c_str(), "t:1: its bytes per second, above 0, are missing");
    EXPECT_TEXT(said("uplink a 1e9\nuplink a 1e9\n", 1).c_str(), "t:2: switch 'a' was given before");
    EXPECT_TEXT(said("\nnode 0 b\n", 1).c_str(), "t:2: switch 'b' has no line before");
    EXPECT_TEXT(said("uplink a 1e9\nnode 7 a\n", 1).c_str(), "t:2: a number of a node below 1 is missing");
    EXPECT_TEXT(said("uplink a 1e9 b\nnode 0 a\n", 1).c_str(), "t:1: switch 'b' is nowhere");
    EXPECT_TEXT(said("uplink a 1e9 b\nuplink b 1e9 a\nnode 0 a\n", 1).c_str(),
                "t:1: its uplinks lead in a circle");
    std::string tower = "node 0 s0\n";
    for (int level = 0; level < 40; level++) {
        const auto one = std::to_string(level), above = std::to_string(level + 1);
        tower.insert(0, "uplink s" + one + " 1e9" + (level < 39 ? " s" + above : "") + "\n");
    }
    EXPECT_TEXT(said(tower.c_str(), 1).c_str(), "t:32: more than 31 switches one above another");
    EXPECT_TEXT(said("link a\n", 1).c_str(), "t:1: 'link' is none of uplink, node");
    EXPECT_TEXT(said("uplink a 1e9 b c\n", 1).c_str(), "t:1: 'c' is too much");
}

// --- buffers
// -----------------------------------------------------------------------------------------------

MadeTrace gather(int32_t senders, uint64_t bytes) {
    MadeTrace made(static_cast<uint32_t>(senders) + 1);
    for (int32_t sender = 1; sender <= senders; sender++) {
        made.add(static_cast<size_t>(sender), {.kind = TRACE_SEND, .peer = 0, .bytes = bytes});
        made.add(0, {.kind = TRACE_RECV, .peer = sender, .bytes = bytes});
    }
    return made;
}

constexpr double TIMEOUT_NS = 5e6;

Network buffered(double buffer_bytes) {
    Network network = simple();
    auto &link = network.links[BETWEEN_NODES];
    link.receive = {};
    link.buffer_bytes = buffer_bytes;
    link.timeout_ns = TIMEOUT_NS;
    return network;
}

Outcome gathered(int32_t senders, uint64_t bytes, double buffer_bytes, uint64_t seed = 1) {
    return replayed(gather(senders, bytes), buffered(buffer_bytes), {}, seed);
}

// As many as have room come at once, one after the other; so do all others a timeout later.
void windows_that_find_no_room_wait_for_the_timeout() {
    for (const uint64_t bytes : {1000U, 16384U, 65536U})
        for (const double buffer : {0.0, 999.0, 65536.0, 69000.0, 1e6})
            for (const int32_t senders : {1, 2, 4, 5, 6, 17, 70}) {
                const auto found = gathered(senders, bytes, buffer);
                const auto each = static_cast<double>(bytes), all = static_cast<double>(senders);
                const double room = 1 + std::floor(buffer / each), first = 10 + each + 1000;
                EXPECT(static_cast<double>(found.timeouts) == std::max(all - room, 0.0));
                const double wanted =
                    all <= room ? first + (all - 1) * each
                                : first + std::max(TIMEOUT_NS, room * each) + (all - room - 1) * each;
                EXPECT_NEAR(found.time_ns, wanted);
            }
}

// Lost segments in the middle are told by those behind, as long as each has room for some.
void long_messages_wait_only_where_many_share_the_buffer() {
    constexpr uint64_t bytes = 8 * PIECE_BYTES;
    for (const int32_t senders : {2, 3, 11, 12, 20}) {
        const auto found = gathered(senders, bytes, 65536);
        const double all = static_cast<double>(senders), together = all * static_cast<double>(bytes);
        const double shares = std::floor(65536 / (FEWEST_SEGMENTS * SEGMENT_BYTES)); // 11
        EXPECT(static_cast<double>(found.timeouts) == std::max(all - shares, 0.0));
        EXPECT(found.time_ns >= together);
        EXPECT(found.timeouts > 0 || found.time_ns <= together + 10 + 1000 + 2 * 1000);
    }
}

void more_room_is_never_slower_and_more_senders_never_faster() {
    for (const uint64_t bytes : {300U, 5000U, 40000U, 65536U, 200000U, 1000000U}) {
        std::vector<double> less_room;
        for (const double buffer : {0.0, 3e3, 1e4, 6e4, 1e5, 7e5, 1e7, 1e9}) {
            std::vector<double> times;
            for (int32_t senders = 1; senders <= 40; senders++)
                times.push_back(gathered(senders, bytes, buffer).time_ns);
            EXPECT(std::is_sorted(times.begin(), times.end()));
            for (size_t place = 0; place < less_room.size(); place++)
                EXPECT(times[place] <= less_room[place] * (1 + 1e-12));
            less_room = times;
        }
    }
}

// Behind an uplink, with another message of the same rank behind it, and sent by agreement.
void whatever_was_lost_comes() {
    MadeTrace made(5);
    uint32_t request = 0;
    for (const int32_t sender : {1, 2, 3, 4})
        for (const uint64_t bytes : {30000U, 100U, 300000U}) {
            made.add(static_cast<size_t>(sender), {.kind = TRACE_SEND, .peer = 0, .bytes = bytes});
            made.add(0, {.kind = TRACE_IRECV, .peer = sender, .bytes = bytes, .request = ++request});
        }
    for (uint32_t one = 1; one <= request; one++)
        made.add(0, {.kind = TRACE_WAIT, .request = one});
    std::istringstream text("uplink a 4e9\nuplink b 4e9\nnode 0 a\nnode 1 b\nnode 2 b\nnode 3 b\nnode 4 b\n");
    const Topology topology = read_topology(text, "made", 5);
    Program program;
    add(program, made);
    for (const uint64_t eager : {uint64_t{1000}, UINT64_MAX}) {
        Network network = buffered(20000);
        network.links[BETWEEN_NODES].eager_bytes = eager;
        const auto found = replayed(program, network, 1, topology);
        EXPECT(found.timeouts > 0 && found.time_ns > TIMEOUT_NS);
        network.links[BETWEEN_NODES].buffer_bytes = 2e6; // more than all of it
        const auto roomy = replayed(program, network, 1, topology);
        EXPECT(roomy.timeouts == 0 && roomy.time_ns < found.time_ns);
        network.links[BETWEEN_NODES].buffer_bytes = std::numeric_limits<double>::infinity();
        EXPECT(replayed(program, network, 1, topology).rank_ns == roomy.rank_ns);
    }
}

// --- whoever comes first
// ------------------------------------------------------------------------------------

// How a master waits for whoever comes.
enum class Farm { RECEIVE, BEGUN, PROBED, ONE_OF_SEVERAL };

// Tasks of `bytes`, given to whoever has done one; as recorded, the workers come in turn.
MadeTrace farm(Farm how, int32_t workers, int tasks, uint64_t bytes,
               const std::vector<uint64_t> &compute_ns) {
    MadeTrace made(static_cast<uint32_t>(workers) + 1);
    const auto request_of = [](int32_t worker) { return static_cast<uint32_t>(worker); };
    const auto expect = [&](int32_t worker) {
        made.add(
            0,
            {.kind = TRACE_IRECV, .peer = worker, .bytes = bytes, .tag = 2, .request = request_of(worker)});
    };
    for (int32_t worker = 1; worker <= workers; worker++) {
        made.add(0, {.kind = TRACE_SEND, .peer = worker, .bytes = 8, .tag = 1});
        if (how == Farm::ONE_OF_SEVERAL)
            expect(worker);
        for (int task = 0; task < tasks; task++) {
            const auto rank = static_cast<size_t>(worker);
            made.add(rank, {.kind = TRACE_RECV, .peer = 0, .bytes = 8, .tag = 1});
            made.add(rank, {.kind = TRACE_SEND,
                            .peer = 0,
                            .bytes = bytes,
                            .tag = 2,
                            .compute_ns = compute_ns[static_cast<size_t>(worker) - 1]});
        }
    }
    for (int task = 0; task < tasks; task++)
        for (int32_t worker = 1; worker <= workers; worker++) {
            if (how == Farm::BEGUN) {
                made.add(0, {.kind = TRACE_IRECV,
                             .peer = TRACE_ANY,
                             .bytes = bytes,
                             .tag = 2,
                             .request = 9,
                             .flags = TRACE_WILD});
                made.add(0, {.kind = TRACE_WAIT, .peer = worker, .bytes = bytes, .tag = 2, .request = 9});
            } else if (how == Farm::ONE_OF_SEVERAL) {
                made.add(0, {.kind = TRACE_WAIT_SOME,
                             .peer = worker,
                             .bytes = bytes,
                             .tag = 2,
                             .request = request_of(worker)});
            } else {
                if (how == Farm::PROBED)
                    made.add(0, {.kind = TRACE_PROBE, .peer = worker, .tag = 2, .flags = TRACE_WILD});
                made.add(0, {.kind = TRACE_RECV,
                             .peer = worker,
                             .bytes = bytes,
                             .tag = 2,
                             .flags = static_cast<uint8_t>(how == Farm::RECEIVE ? TRACE_WILD : 0)});
            }
            if (task + 1 < tasks) {
                made.add(0, {.kind = TRACE_SEND, .peer = worker, .bytes = 8, .tag = 1, .compute_ns = 50});
                if (how == Farm::ONE_OF_SEVERAL)
                    expect(worker);
            }
        }
    made.add(0, {.kind = TRACE_PHASE, .compute_ns = 1});
    return made;
}

void whoever_comes_first_is_answered_first() {
    for (const auto how : {Farm::RECEIVE, Farm::BEGUN, Farm::PROBED, Farm::ONE_OF_SEVERAL})
        for (const uint64_t eager_bytes : {UINT64_MAX, uint64_t{20}}) {
            // As recorded, the slow first worker would be waited for before the others are given more.
            const MadeTrace made = farm(how, 3, 4, 100, {100000, 1000, 1500});
            const auto found = replayed(made, simple(eager_bytes));
            EXPECT(!found.is_as_recorded && found.moved > 0);
            EXPECT(found.rank_ns[2] < 30000 && found.rank_ns[3] < 30000);
            EXPECT(found.rank_ns[0] >= 4 * 100000 && found.rank_ns[0] < 4 * 100000 + 25000);
            // Workers that come in turn, as recorded, do so here.
            const MadeTrace alike = farm(how, 3, 4, 100, {100000, 101000, 102000});
            const auto in_turn = replayed(alike, simple(eager_bytes));
            EXPECT(in_turn.moved == 0);
            EXPECT_NEAR(in_turn.time_ns, statically(alike, simple(eager_bytes)));
        }
}

// The same program, but one worker is behind an uplink that is slow.
void a_slow_link_changes_the_order() {
    const MadeTrace made = farm(Farm::RECEIVE, 2, 6, 10000, {50000, 51000});
    Program program;
    add(program, made, {0, 1, 2});
    EXPECT(replayed(program, simple()).moved == 0);
    const auto topology =
        topology_of("uplink fast 1e12\nuplink slow 1e7\nnode 0 fast\nnode 2 fast\nnode 1 slow\n", 3);
    const auto slow = replayed(program, simple(), 1, topology);
    EXPECT(slow.moved > 0 && !slow.is_as_recorded);
    EXPECT(slow.rank_ns[2] < 6 * 51000 + 6 * 25000);
}

// What follows a receive from anybody has to do with another rank: it stays as it was.
void what_concerns_others_stays_in_its_order() {
    MadeTrace made(4);
    for (const int32_t worker : {1, 2}) {
        made.add(static_cast<size_t>(worker),
                 {.kind = TRACE_SEND, .peer = 0, .bytes = 8, .compute_ns = worker == 1 ? 90000U : 10U});
        made.add(0, {.kind = TRACE_RECV, .peer = worker, .bytes = 8, .flags = TRACE_WILD});
        made.add(0, {.kind = TRACE_SEND, .peer = 3, .bytes = 8});
        made.add(3, {.kind = TRACE_RECV, .peer = 0, .bytes = 8});
    }
    Program program;
    add(program, made);
    EXPECT(program.parts[0].wild == 2 && program.parts[0].chosen == 0);
    EXPECT_NEAR(replayed(program, simple()).time_ns, statically(made, simple()));
}

// All of several requests were waited for in one call: what follows does not begin before.
void what_was_waited_for_together_is() {
    MadeTrace made(3);
    for (const int32_t worker : {1, 2}) {
        made.add(static_cast<size_t>(worker),
                 {.kind = TRACE_SEND, .peer = 0, .bytes = 8, .compute_ns = worker == 1 ? 90000U : 10U});
        made.add(static_cast<size_t>(worker), {.kind = TRACE_RECV, .peer = 0, .bytes = 8});
        made.add(0, {.kind = TRACE_IRECV,
                     .peer = TRACE_ANY,
                     .bytes = 8,
                     .request = static_cast<uint32_t>(worker),
                     .flags = TRACE_WILD});
    }
    for (const int32_t worker : {1, 2})
        made.add(0, {.kind = TRACE_WAIT,
                     .peer = worker,
                     .bytes = 8,
                     .request = static_cast<uint32_t>(worker),
                     .flags = static_cast<uint8_t>(worker == 1 ? 0 : TRACE_NEXT)});
    for (const int32_t worker : {2, 1})
        made.add(0, {.kind = TRACE_SEND, .peer = worker, .bytes = 8});
    EXPECT(replayed(made, simple()).rank_ns[2] > 90000);
}

// Whoever comes first needs what is done for another one: the recorded order is the way out.
void where_all_would_wait_it_goes_as_recorded() {
    MadeTrace made(4);
    const auto with_master = [&](int32_t worker, uint64_t compute_ns) {
        made.add(static_cast<size_t>(worker),
                 {.kind = TRACE_SEND, .peer = 0, .bytes = 8, .tag = 2, .compute_ns = compute_ns});
    };
    with_master(1, 90000);
    with_master(2, 10);
    // Worker 2 takes its answer only after worker 1 has had its own.
    made.add(1, {.kind = TRACE_RECV, .peer = 0, .bytes = 5000, .tag = 1});
    made.add(1, {.kind = TRACE_SEND, .peer = 2, .bytes = 8, .tag = 3});
    made.add(2, {.kind = TRACE_RECV, .peer = 1, .bytes = 8, .tag = 3});
    made.add(2, {.kind = TRACE_RECV, .peer = 0, .bytes = 5000, .tag = 1});
    for (const int32_t worker : {1, 2}) {
        made.add(0, {.kind = TRACE_RECV, .peer = worker, .bytes = 8, .tag = 2, .flags = TRACE_WILD});
        made.add(0, {.kind = TRACE_SEND, .peer = worker, .bytes = 5000, .tag = 1});
    }
    EXPECT(replayed(made, simple()).moved == 1);
    const auto found = replayed(made, simple(100));
    EXPECT(found.is_as_recorded && found.moved == 0);
    EXPECT_NEAR(found.time_ns, statically(made, simple(100)));
}

// --- at random
// ----------------------------------------------------------------------------------------------

using Random = std::mt19937_64;

uint64_t below(Random &random, uint64_t limit) { return random() % limit; }

// A program that comes to its end whatever the network is, as its messages are in one order for all.
class RandomProgram {
  public:
    struct Kinds {
        bool begins_sends = true; // or waits for each at once
        bool has_collectives = true;
        bool is_wild = false;
        bool is_ring = false; // messages go to the next rank only, and are taken in their order
    };

    RandomProgram(Random &random, uint32_t ranks, const Kinds &kinds)
        : made(ranks), random_(random), ranks_(ranks), kinds_(kinds), open_(ranks) {
        made.library = below(random, 2) == 0 ? "Open MPI v4.1.4" : "";
        for (uint64_t left = 5 + below(random, 40); left > 0; left--) {
            if (kinds.has_collectives && below(random, 8) == 0)
                collective();
            else if (kinds.is_wild && below(random, 4) == 0)
                gather();
            else
                message();
            for (size_t rank = 0; rank < ranks; rank++)
                if (!open_[rank].empty() && below(random, 3) == 0)
                    wait(rank, kinds.is_ring ? 0 : below(random, open_[rank].size()));
        }
        for (size_t rank = 0; rank < ranks; rank++)
            while (!open_[rank].empty())
                wait(rank, 0);
    }

    MadeTrace made;

  private:
    struct Open {
        uint32_t request;
        int32_t peer, tag;
    };

    uint64_t compute() { return below(random_, 3) == 0 ? below(random_, 20000) : 0; }

    void collective() {
        static const trace_kind kinds[] = {TRACE_BARRIER,   TRACE_BCAST,  TRACE_ALLREDUCE, TRACE_ALLGATHER,
                                           TRACE_ALLTOALL,  TRACE_REDUCE, TRACE_GATHER,    TRACE_SCATTER,
                                           TRACE_ALLREDUCE, TRACE_SCAN};
        const auto kind = kinds[below(random_, std::size(kinds))];
        const uint64_t bytes = below(random_, 2000);
        const auto root = static_cast<int32_t>(below(random_, ranks_));
        for (size_t rank = 0; rank < ranks_; rank++)
            made.add(rank, {.kind = kind, .peer = root, .bytes = bytes, .compute_ns = compute()});
    }

    // One takes what the others have, whoever comes first, and may answer.
    void gather() {
        const auto root = static_cast<size_t>(below(random_, ranks_));
        const bool is_answered = below(random_, 2) == 0, is_begun = below(random_, 2) == 0;
        std::vector<size_t> others;
        for (size_t rank = 0; rank < ranks_; rank++)
            if (rank != root)
                others.push_back(rank);
        std::shuffle(others.begin(), others.end(), random_);
        for (const size_t other : others) {
            const auto peer = static_cast<int32_t>(other), back = static_cast<int32_t>(root);
            const uint64_t bytes = below(random_, 3000);
            made.add(other,
                     {.kind = TRACE_SEND, .peer = back, .bytes = bytes, .tag = 5, .compute_ns = compute()});
            if (is_begun) {
                made.add(root, {.kind = TRACE_IRECV,
                                .peer = TRACE_ANY,
                                .bytes = bytes,
                                .tag = 5,
                                .request = ++requests_,
                                .flags = TRACE_WILD});
                made.add(root, {.kind = TRACE_WAIT, .peer = peer, .tag = 5, .request = requests_});
            } else {
                made.add(root,
                         {.kind = TRACE_RECV, .peer = peer, .bytes = bytes, .tag = 5, .flags = TRACE_WILD});
            }
            if (!is_answered)
                continue;
            made.add(root,
                     {.kind = TRACE_SEND, .peer = peer, .bytes = bytes, .tag = 6, .compute_ns = compute()});
            made.add(other, {.kind = TRACE_RECV, .peer = back, .bytes = bytes, .tag = 6});
        }
    }

    void message() {
        const auto from = static_cast<size_t>(below(random_, ranks_));
        const auto to = (from + 1 + (kinds_.is_ring ? 0 : below(random_, ranks_ - 1))) % ranks_;
        const uint64_t bytes = below(random_, kinds_.is_ring ? 300000 : 3000);
        const auto tag = static_cast<int32_t>(kinds_.is_ring ? 0 : below(random_, 2));
        MadeTrace::Call call{.kind = TRACE_SEND,
                             .peer = static_cast<int32_t>(to),
                             .bytes = bytes,
                             .tag = tag,
                             .compute_ns = compute()};
        if (kinds_.begins_sends && below(random_, 3) == 0) {
            call.kind = TRACE_ISEND;
            call.request = ++requests_;
            open_[from].push_back({call.request, TRACE_NOBODY, 0});
        }
        made.add(from, call);
        call = {.kind = TRACE_RECV,
                .peer = static_cast<int32_t>(from),
                .bytes = 300000,
                .tag = tag,
                .compute_ns = compute()};
        const bool is_wild = kinds_.is_wild && below(random_, 2) == 0;
        if (is_wild)
            call.flags = TRACE_WILD;
        // Of a ring they are waited for in their order.
        if (kinds_.is_ring ? !open_[to].empty() || below(random_, 2) == 0 : below(random_, 2) == 0) {
            open_[to].push_back({++requests_, call.peer, tag});
            call.kind = TRACE_IRECV;
            call.request = requests_;
            if (is_wild)
                call.peer = TRACE_ANY;
        }
        made.add(to, call);
    }

    void wait(size_t rank, size_t place) {
        const Open one = open_[rank][place];
        open_[rank].erase(open_[rank].begin() + static_cast<std::ptrdiff_t>(place));
        const auto kind = kinds_.is_wild && below(random_, 2) == 0 ? TRACE_WAIT_SOME : TRACE_WAIT;
        made.add(rank, {.kind = kind,
                        .peer = one.peer,
                        .bytes = 8,
                        .tag = one.tag,
                        .request = one.request,
                        .compute_ns = compute()});
    }

    Random &random_;
    const uint32_t ranks_;
    const Kinds kinds_;
    std::vector<std::vector<Open>> open_;
    uint32_t requests_ = 0;
};

Network random_network(Random &random, uint64_t eager_bytes, bool has_wire) {
    Network network{.name = "random",
                    .links = {},
                    .reduce_per_byte_ns = 0.1 * static_cast<double>(below(random, 10)),
                    .compute = 0.5 + 0.1 * static_cast<double>(below(random, 10))};
    for (auto &link : network.links) {
        link.latency_ns = static_cast<double>(below(random, 20000));
        link.eager_bytes = eager_bytes;
        for (auto *pieces : {&link.send, &link.receive, &link.busy, &link.after, &link.wire}) {
            if ((pieces == &link.wire && !has_wire) || (pieces == &link.busy && below(random, 2) == 0))
                continue;
            pieces->add({0, static_cast<double>(below(random, 1000)),
                         0.01 * static_cast<double>(below(random, 500))});
            pieces->add({1000, static_cast<double>(below(random, 3000)),
                         0.01 * static_cast<double>(below(random, 300))});
        }
    }
    if (has_wire && below(random, 2) == 0)
        network.links[BETWEEN_NODES].depth_ns = static_cast<double>(below(random, 20000));
    return network;
}

void said_by_seed(uint64_t seed, int before) {
    if (expect_failures > before)
        fprintf(stderr, "  … by the program of seed %d\n", static_cast<int>(seed));
}

// Where the order in which messages take interfaces cannot be another one, both engines say the same: where
// they are not taken for any time, where a rank's messages all go to one that takes them in that order.
void both_engines_say_the_same(uint64_t programs) {
    for (uint64_t seed = 0; seed < programs && expect_failures < 5; seed++) {
        Random random(seed);
        const int before = expect_failures;
        const auto ranks = static_cast<uint32_t>(2 + below(random, 6));
        const bool is_ring = seed % 3 == 0, at_once = seed % 3 == 1;
        // Messages that are agreed on take the interface when they are: in no other order, if one waits for
        // each.
        const RandomProgram program(
            random, ranks, {.begins_sends = at_once, .has_collectives = at_once, .is_ring = is_ring});
        const Network network =
            random_network(random, at_once ? UINT64_MAX : below(random, is_ring ? 400000 : 4000), is_ring);
        Nodes nodes;
        if (at_once)
            for (uint32_t rank = 0; rank < ranks; rank++)
                nodes.push_back(below(random, 2) == 0 ? rank : rank / 2);
        EXPECT_NEAR(replayed(program.made, network, nodes).time_ns, statically(program.made, network, nodes));
        said_by_seed(seed, before);
    }
}

// What interrupts take counts where a message comes while its receiver does something else, and for as much
// of it as that has not waited, whether it is received from one rank or from anybody.
void interrupts_take_nothing_of_who_waits() {
    for (const bool is_wild : {false, true})
        for (const uint32_t computes : {0U, 1000U, 3900U, 4900U, 9000U}) {
            MadeTrace made(2);
            made.add(0, {.kind = TRACE_SEND, .peer = 1, .bytes = 8, .compute_ns = 4000});
            made.add(1, {.kind = TRACE_RECV,
                         .peer = 0,
                         .bytes = 8,
                         .flags = static_cast<uint8_t>(is_wild ? TRACE_WILD : 0),
                         .compute_ns = computes});
            Network network = simple();
            network.links[BETWEEN_NODES].busy.add({0, 700, 0});
            const double comes = 4000 + 10 + 8 + 1000, wanted = std::max(comes, computes + 700.0) + 20;
            EXPECT_NEAR(statically(made, network), wanted);
            EXPECT_NEAR(replayed(made, network).time_ns, wanted);
        }
}

// Everything that engine A replays is replayed, with all that may be shared, and the same each time.
void it_always_ends_and_is_the_same_again(uint64_t programs) {
    uint64_t moved = 0, as_recorded = 0, timeouts = 0;
    for (uint64_t seed = 0; seed < programs && expect_failures < 5; seed++) {
        Random random(seed + (uint64_t{1} << 40));
        const int before = expect_failures;
        const auto ranks = static_cast<uint32_t>(2 + below(random, 6));
        const RandomProgram program(random, ranks, {.is_wild = seed % 2 == 0});
        const Network network = random_network(random, below(random, 4000), true);
        Nodes nodes;
        for (uint32_t rank = 0; rank < ranks; rank++)
            nodes.push_back(static_cast<uint32_t>(below(random, ranks)));
        Program whole;
        add(whole, program.made, nodes);
        add(whole, program.made, nodes);
        const Topology topology;
        Simulator simulator(whole, topology);
        const auto found = simulator.run(network, seed);
        moved += found.moved;
        as_recorded += found.is_as_recorded ? 1 : 0;
        const auto again = simulator.run(network, seed);
        EXPECT(found.rank_ns == again.rank_ns && found.events == again.events);
        // A buffer that is never full changes nothing; whatever finds one full comes all the same.
        Network buffered = network;
        auto &buffer_bytes = buffered.links[BETWEEN_NODES].buffer_bytes;
        buffer_bytes = 1e15;
        EXPECT(simulator.run(buffered, seed).rank_ns == found.rank_ns);
        buffer_bytes = static_cast<double>(below(random, 5000));
        timeouts += simulator.run(buffered, seed).timeouts;
        // No faster than without anything that is shared, and all sent at once.
        Network free = network;
        for (auto &link : free.links) {
            link.wire = {};
            link.after = {}; // who waits for a message to leave need not have that time in addition
            link.eager_bytes = UINT64_MAX;
        }
        if (found.moved == 0)
            EXPECT(found.time_ns >= statically(program.made, free, nodes) * (1 - 1e-9));
        said_by_seed(seed, before);
    }
    EXPECT(programs < 100 || (moved > 0 && timeouts > 0));
    printf("%d blocks moved, %d programs as recorded\n", static_cast<int>(moved),
           static_cast<int>(as_recorded));
}

// Who is first of those that come together is the seed's to say, and nobody else's.
void a_seed_decides_between_equals() {
    constexpr int32_t workers = 8;
    MadeTrace made(workers + 1);
    for (int32_t worker = 1; worker <= workers; worker++) {
        const auto rank = static_cast<size_t>(worker);
        made.add(rank, {.kind = TRACE_SEND, .peer = 0, .bytes = 1000, .tag = 2});
        made.add(rank, {.kind = TRACE_RECV, .peer = 0, .bytes = 1000, .tag = 1});
        made.add(0, {.kind = TRACE_RECV, .peer = worker, .bytes = 1000, .tag = 2, .flags = TRACE_WILD});
        made.add(0, {.kind = TRACE_SEND, .peer = worker, .bytes = 1000, .tag = 1});
    }
    Program program;
    add(program, made);
    std::set<std::vector<double>> found;
    for (uint64_t seed = 0; seed < 5; seed++) {
        const auto ends = replayed(program, simple(), seed).rank_ns;
        EXPECT(ends == replayed(program, simple(), seed).rank_ns);
        found.insert(ends);
    }
    EXPECT(found.size() > 1);
}

} // namespace

int main(int count, char **words) {
    const uint64_t programs = count > 1 ? std::strtoull(words[1], nullptr, 10) : 6000;
    one_message_is_as_engine_a_has_it();
    a_late_receiver_holds_up_a_large_message_only();
    a_large_message_takes_as_long_in_pieces();
    only_a_buffer_lets_both_send_first();
    a_collective_of_some();
    a_message_that_nobody_takes_goes_all_the_same();
    incast_takes_as_long_as_all_messages_together();
    a_shaped_interface_receives_at_its_rate();
    two_programs_slow_each_other();
    long_messages_let_short_ones_through();
    ranks_of_a_node_share_its_interface();
    uplinks_are_shared();
    switches_of_switches_are_climbed();
    wrong_topologies_are_named();
    windows_that_find_no_room_wait_for_the_timeout();
    long_messages_wait_only_where_many_share_the_buffer();
    more_room_is_never_slower_and_more_senders_never_faster();
    whatever_was_lost_comes();
    whoever_comes_first_is_answered_first();
    a_slow_link_changes_the_order();
    what_concerns_others_stays_in_its_order();
    what_was_waited_for_together_is();
    where_all_would_wait_it_goes_as_recorded();
    interrupts_take_nothing_of_who_waits();
    both_engines_say_the_same(programs);
    it_always_ends_and_is_the_same_again(programs / 2);
    a_seed_decides_between_equals();
    return EXPECT_STATUS();
}
