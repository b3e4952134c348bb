// What each rank does, one thing after the other, of one program or of several on the same nodes.
//
// It is made of the plan that engine A evaluates: the same messages, algorithms of collectives and buffers.
// What the plan has put in one order for all ranks is each rank's own here, and where a rank goes on with
// whichever message comes first, it says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/des_choices.hpp"
#include "replay/plan.hpp"

namespace wulf {

constexpr uint32_t NONE = UINT32_MAX;

struct Op {
    enum Kind : uint32_t {
        COMPUTE,   // nothing but the time before it
        REDUCE,    // what came is added up: `number` is its bytes
        SEND,      // the message is ready
        POST,      // the receiver is ready for it
        SENT,      // the sender waits until it has gone
        RECEIVE,   // the receiver waits until it has come
        BEGIN_ANY, // a receive from anybody is begun: as recorded it is for message `number`
        CHOICE,    // blocks that may change places follow: `number` is the choice
        BLOCK_END, // `number` is the choice
    };
    Kind kind;
    uint32_t number; // of the message, unless said otherwise
    uint32_t compute_ns;
};

struct Message {
    uint32_t source = NONE, destination = NONE; // ranks of all programs together; NONE: nobody receives it
    uint32_t size : 30 = 0;                     // which of Program::sizes
    uint32_t is_chosen_come : 1 = 0;            // a block of the receiver is about it,
    uint32_t is_chosen_sent : 1 = 0;            // one of the sender is
};

// See des_choices.hpp.
struct Block {
    uint32_t choice, first_op;
    uint32_t message = NONE;              // that it is about; NONE: nothing that must be waited for
    uint32_t before = NONE, after = NONE; // of the same partner
};

struct Choice {
    Chosen chosen;
    uint32_t rank = 0;
    uint32_t first_block = 0, blocks = 0;
    uint32_t end_op = 0;       // behind the last block
    bool has_receives = false; // some were begun for it (BEGIN_ANY)
};

// One of the programs: which ranks are its own.
struct Part {
    std::string name;
    uint32_t first_rank = 0, ranks = 0;
    uint64_t messages = 0;
    uint64_t wild = 0, chosen = 0; // receives from anybody; those that are in choices
};

struct Program {
    std::vector<Part> parts;
    std::vector<uint32_t> first_op{0}; // of each rank; the end of the last one behind it
    std::vector<Op> ops;
    std::vector<Message> messages;
    std::vector<Size> sizes;
    std::vector<uint32_t> nodes; // of each rank
    std::vector<Choice> choices;
    std::vector<Block> blocks;
    // Of each message the block that is about its coming, or its having been sent; empty where there is no
    // choice.
    std::vector<uint32_t> block_of_come, block_of_sent;

    [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(first_op.size() - 1); }
};

// Append a program. The plan must have been made with `keeps_records`.
//
// `nodes`: on which node each of its ranks is; empty: each on the node of its own number.
void append(Program &program, const std::string &name, const Plan &plan, Trace &trace,
            const std::vector<uint32_t> &nodes);

} // namespace wulf
