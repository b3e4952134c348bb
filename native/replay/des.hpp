// What programs take on a network, event by event: with who comes first, and what is shared between ranks, as
// it turns out.
//
// A rank goes on by itself as long as it waits for nothing. A message costs both CPUs, the latency and its
// time on the wire as with engine A (maxplus.hpp), but the interfaces belong to nodes, and are taken in the
// order in which messages come to them:
//
//   sender's interface    one message after the other; of messages of several ranks, where one has several
//   pieces,
//                         a piece in turn; those of one rank stay in their order
//   uplinks               one piece after the other as they come, both ways apart
//   receiver's interface  one piece after the other as they come; a piece that finds it free is through when
//   it
//                         has come (its bytes went on while it came)
//
// Messages above PIECE_BYTES go in pieces of it. Within a node nothing is shared.
//
// The switch's port to a receiver may have a buffer of B bytes (network.hpp), which is as long as it takes to
// pass them on at the rate of large messages. A piece that, with what waits there before it, is more than
// that when it has come has no room and is lost:
//
//   message of one piece      all of it was under way at once, so that nothing behind it tells its sender: it
//                             comes again after the timeout
//   message of several        its sender hears of it from what follows, and makes its window as small as the
//                             port wants it: the piece takes its turn, a round trip later at the earliest. n
//                             such messages share the buffer; where it is less than FEWEST_SEGMENTS for each,
//                             windows are too small for later segments to tell of lost ones, and the end of a
//                             message that is lost comes again after the timeout
//
// What comes again takes its turn: its sender begins anew with one segment. So of k messages of s <= 64 KiB
// that come at once k - 1 - floor(B / s) wait for the timeout, and of longer ones k - floor(B / 5840). After
// Phanishayee et al., Measurement and Analysis of TCP Throughput Collapse in Cluster-based Storage Systems,
// FAST 2008, which finds timeouts by whole windows that are lost and by windows too small for three
// duplicates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/des_program.hpp"
#include "replay/des_queue.hpp"
#include "replay/des_topology.hpp"

namespace wulf {

// What a kernel gives an interface at once: the largest segment that it leaves to the interface to divide.
constexpr uint64_t PIECE_BYTES = 65536;
constexpr uint32_t MOST_PIECES = (1U << 27) - 1; // of a message
// The one that is lost and three whose answers tell of it.
constexpr uint32_t FEWEST_SEGMENTS = 4;
constexpr double SEGMENT_BYTES = 1460;

struct Outcome {
    double time_ns = 0;
    std::vector<double> part_ns; // of each program
    std::vector<double> rank_ns;
    uint64_t events = 0;
    uint64_t moved = 0;    // blocks that came before one that was recorded before them
    uint64_t timeouts = 0; // messages that were lost in a full buffer, and came again after a timeout
    // Whoever came first would have made all wait for each other: in this outcome all choices are as
    // recorded.
    bool is_as_recorded = false;
};

// Keeps its memory between runs. Program and topology must outlive it.
class Simulator {
  public:
    Simulator(const Program &program, const Topology &topology);

    // The same seed gives the same; it decides who is first of those who come at the same time. Throws
    // InputError where all wait for each other.
    Outcome run(const Network &network, uint64_t seed);

  private:
    struct RankState {
        double clock = 0;
        double idle_ns = 0;         // for which it has waited for the message of a choice that it takes next
        uint32_t next = 0, end = 0; // operation
        uint32_t waits_for = NONE;  // message
        uint32_t chooses = NONE;    // choice that has nothing to offer yet
        uint32_t first_ready = NONE, last_ready = NONE;   // messages that are to enter the interface
        uint32_t first_queued = NONE, last_queued = NONE; // those that wait for it in pieces
        uint32_t node = 0, next_in_ring = NONE;
        bool is_back = false; // at the operation that it stopped at
        // Its messages take the interface in its own order, and no others do; so many of them before their
        // time.
        bool is_alone = false;
        uint32_t ahead = 0;
    };
    struct MessageState {
        double a = 0; // when it was ready; then when it has come
        double b = 0; // when its receiver was ready; then when it has gone
        uint32_t next = NONE;
        uint32_t destination = NONE; // this and the next three: as of Program::messages
        uint32_t size : 30 = 0;
        uint32_t is_chosen_come : 1 = 0, is_chosen_sent : 1 = 0; // never, where all is as recorded
        uint32_t pieces_left : 27 = 0;
        uint32_t is_held : 1 = 0; // some of it was lost in a full buffer
        uint32_t is_asked : 1 = 0, is_posted : 1 = 0, has_come : 1 = 0, has_gone : 1 = 0;
    };
    struct Costs {
        double send, receive, busy, after, wire, piece_wire, latency;
        double first, piece_first, depth; // through an interface that has rested; ahead of its rate at most
        double piece_bytes;
        uint32_t pieces;
        double answering, answered;
        bool agreed;      // sender and receiver must be ready
        bool is_answered; // … must have met until it is through
        bool is_within;
    };
    struct NodeState {
        double out = 0, in = 0; // when all before has been sent, has been received
        double shaped_in = 0;   // … by the rate of a shaped interface
        uint32_t first_in_ring = NONE, last_in_ring = NONE; // ranks with messages that wait
        bool is_shared = false;                             // some do
        uint32_t ranks = 0;
        uint32_t held = 0; // messages that share the buffer before it, as they lost something there
    };
    struct BlockState {
        uint32_t next = NONE;
        bool has_come = false, is_released = false, is_taken = false;
    };
    struct Fifo {
        uint32_t first = NONE, last = NONE;
    };
    struct ChoiceState {
        Fifo come, ready;       // blocks: those without a receive yet; those that may be next
        uint32_t receives = 0;  // begun, without a message yet
        uint32_t early = 0;     // of all that were begun those whose place is still to come
        uint32_t under_way = 0; // messages that were agreed on
        uint32_t taken = 0, lowest = 0;
        bool is_entered = false;
    };

    bool attempt(const Network &network, uint64_t seed);
    void prepare(const Network &network, uint64_t seed);
    void prepare_costs(const Network &network);
    void prepare_messages();
    void happen(const TimedEvent &event);
    [[nodiscard]] Outcome outcome() const;
    [[nodiscard]] const Costs &costs_of(uint32_t message) const { return costs_[messages_[message].size]; }

    // Ranks (des.cpp).
    void go_on(uint32_t rank);
    bool step(uint32_t rank, const Op &op);
    void send(uint32_t rank, uint32_t message);
    void post(uint32_t message, double time_ns);
    void agree(uint32_t message);
    void answer(uint32_t message);
    void through(uint32_t message, double time_ns);
    bool wait_until_sent(RankState &rank, uint32_t message);
    bool wait_until_received(RankState &rank, uint32_t message);
    void gone(uint32_t message, double time_ns);
    void deliver(uint32_t message, double time_ns);
    void come(uint32_t message, double time_ns);
    void wake(uint32_t rank);

    // Choices (des_choosing.cpp).
    bool is_in_step(uint32_t rank);
    bool choose(uint32_t rank, uint32_t choice);
    void begin_any(uint32_t message);
    void begin_early(uint32_t choice);
    void announced(uint32_t message);
    void chosen_come(uint32_t message);
    void arrived(uint32_t block);
    void release(uint32_t block);
    void match(uint32_t choice);
    void ready(uint32_t block);
    void append(Fifo &fifo, uint32_t block);
    uint32_t take_first(Fifo &fifo);

    // Interfaces and uplinks (des_wires.cpp).
    void next_ready(uint32_t rank);
    void enter(uint32_t rank, uint32_t message, double time_ns);
    void queue(uint32_t rank, uint32_t message);
    void next_piece(uint32_t node);
    void sent(uint32_t message, bool is_last, double time_ns);
    void piece(uint32_t message, uint32_t stage, bool is_last);
    bool waits_for_timeout(uint32_t message, bool is_last, double &in);
    bool hold(uint32_t message);
    void let_go(uint32_t message);
    [[nodiscard]] std::span<const uint32_t> route(uint32_t message) const;

    const Program &program_;
    const Topology &topology_;
    bool is_as_recorded_ = false;
    double now_ = 0, compute_ = 1, reduce_ = 0;
    double room_ns_ = 0, buffer_bytes_ = 0, timeout_ns_ = 0;
    uint64_t events_ = 0, moved_ = 0, timeouts_ = 0;
    uint32_t finished_ = 0; // ranks
    EventQueue queue_;
    std::vector<uint32_t> awake_; // ranks that can go on
    std::vector<Costs> costs_;    // of each size
    std::vector<RankState> ranks_;
    std::vector<MessageState> messages_;
    std::vector<NodeState> nodes_;
    std::vector<double> ways_; // when each way of an uplink is free
    std::vector<BlockState> blocks_;
    std::vector<ChoiceState> choices_;
};

} // namespace wulf
