// What a rank does in a collective: the messages of the algorithm that the library takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "trace/format.h"

namespace wulf {

// One thing that a rank does in a collective, with ranks of the communicator. Small, as every rank has a list
// of them.
struct Move {
    enum Kind : uint64_t {
        SEND,    // and wait until it has gone
        RECEIVE, // and wait until it has come
        BEGIN_SEND,
        BEGIN_RECEIVE,
        WAIT,   // for all that was begun
        REDUCE, // add up so many bytes
    };
    static constexpr uint64_t KIND_BITS = 3, PEER_BITS = 20, BYTES_BITS = 41;

    // Throws InputError where it is of more bytes than there can be.
    Move(Kind what, int32_t with, uint64_t how_many)
        : kind(what), peer(static_cast<uint64_t>(with) & ((1U << PEER_BITS) - 1)),
          bytes(how_many & ((uint64_t{1} << BYTES_BITS) - 1)) {
        if (how_many >> BYTES_BITS)
            refuse(how_many);
    }
    [[noreturn]] static void refuse(uint64_t bytes);

    Kind kind : KIND_BITS;
    uint64_t peer : PEER_BITS;
    uint64_t bytes : BYTES_BITS;
};
static_assert(sizeof(Move) == 8);

// An algorithm for messages from a size on, in communicators from a number of ranks on.
struct CollectiveRule {
    trace_kind kind;
    uint32_t from_ranks = 0;
    uint64_t from_bytes = 0;
    std::string algorithm;
    uint64_t segment_bytes = 0; // 0: whole
};

// The last rule that fits counts.
class CollectiveRules {
  public:
    struct Choice {
        uint32_t from_ranks;
        uint64_t from_bytes;
        size_t algorithm; // its place among those of the collective
        uint64_t segment_bytes;
    };

    CollectiveRules() = default;
    CollectiveRules(std::initializer_list<CollectiveRule> rules) {
        for (const auto &rule : rules)
            add(rule);
    }

    // Of a collective that is waited for at once, of one that is only begun, or of both. Throw InputError
    // where it has no such algorithm.
    void add(const CollectiveRule &rule);
    void add(const CollectiveRule &rule, bool is_begun);
    // More rules, which count before those that are there.
    void add(const CollectiveRules &others);
    // nullptr where none fits.
    [[nodiscard]] const Choice *find(trace_kind kind, bool is_begun, uint32_t ranks, uint64_t bytes) const;

  private:
    static constexpr size_t KINDS = TRACE_MAKE_COMMUNICATOR - TRACE_BARRIER + 1;

    static size_t place(trace_kind kind, bool is_begun) {
        return static_cast<size_t>(kind - TRACE_BARRIER) + (is_begun ? KINDS : 0);
    }
    std::vector<Choice> &of(trace_kind kind, bool is_begun) { return by_kind_[place(kind, is_begun)]; }

    std::array<std::vector<Choice>, 2 * KINDS> by_kind_;
};

// A collective as one rank sees it.
struct CollectiveCall {
    trace_kind kind;
    int32_t rank, ranks, root; // root: TRACE_NOBODY where there is none
    uint64_t bytes;            // see format.h
    // Of each rank, or to each; empty where all are alike.
    std::vector<uint64_t> sizes;
    // Neighbours, where it is one of a neighbourhood.
    const std::vector<int32_t> *sources = nullptr, *targets = nullptr;
    bool is_begun = false; // by one call, and waited for by another
};

// Throws InputError where there is none of that name.
trace_kind collective_named(const std::string &name);
// Names of the algorithms that are known for a collective.
const std::vector<std::string> &algorithms(trace_kind kind);

// Append what the rank does; where no rule fits, what libraries usually do.
void expand(const CollectiveCall &call, const CollectiveRules &rules, std::vector<Move> &moves);

} // namespace wulf
