// How collectives are made of messages: the algorithms of MPI libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/collectives.hpp"

namespace wulf {

// One rank's part of an algorithm, while it is written down.
class Writer {
  public:
    Writer(const CollectiveCall &of, uint64_t segment_bytes, const CollectiveRules &rules,
           std::vector<Move> &moves)
        : call(of), rank(of.rank), ranks(of.ranks), root(of.root == TRACE_NOBODY ? 0 : of.root),
          segment(segment_bytes), rules_(rules), moves_(moves) {}

    void send(int32_t to, uint64_t bytes) { moves_.push_back({Move::SEND, to, bytes}); }
    void receive(int32_t from, uint64_t bytes) { moves_.push_back({Move::RECEIVE, from, bytes}); }
    void begin_send(int32_t to, uint64_t bytes) { moves_.push_back({Move::BEGIN_SEND, to, bytes}); }
    void begin_receive(int32_t from, uint64_t bytes) { moves_.push_back({Move::BEGIN_RECEIVE, from, bytes}); }
    void wait() { moves_.push_back({Move::WAIT, 0, 0}); }
    void reduce(uint64_t bytes) {
        if (bytes > 0)
            moves_.push_back({Move::REDUCE, 0, bytes});
    }
    void exchange(int32_t to, uint64_t sent, int32_t from, uint64_t received) {
        begin_receive(from, received);
        begin_send(to, sent);
        wait();
    }
    // Another collective of the same ranks, as the rules have it; its root, where it has one, is rank 0.
    void another(trace_kind kind, uint64_t bytes) {
        expand({.kind = kind, .rank = rank, .ranks = ranks, .root = 0, .bytes = bytes, .sizes = {}}, rules_,
               moves_);
    }

    // A rank, counted from the root on, and back. Of what is only begun the root and rank 0 change places.
    [[nodiscard]] int32_t relative() const {
        return call.is_begun ? changed(rank) : (rank - root + ranks) % ranks;
    }
    [[nodiscard]] int32_t absolute(int32_t one) const {
        return call.is_begun ? changed(one) : (one + root) % ranks;
    }
    [[nodiscard]] int32_t beside(int32_t distance) const {
        return ((rank + distance) % ranks + ranks) % ranks;
    }
    // Bytes of one of `parts` nearly equal parts.
    static uint64_t part(uint64_t bytes, int32_t parts, int32_t number) {
        const auto count = static_cast<uint64_t>(parts);
        return bytes / count + (static_cast<uint64_t>(number) < bytes % count ? 1 : 0);
    }
    // Bytes of a rank in a collective whose ranks may differ.
    [[nodiscard]] uint64_t of(int32_t one) const {
        return call.sizes.empty() ? call.bytes : call.sizes[static_cast<size_t>(one)];
    }
    // Bytes of `count` ranks from one on, around.
    [[nodiscard]] uint64_t of_several(int32_t first, int32_t count) const {
        if (call.sizes.empty())
            return call.bytes * static_cast<uint64_t>(count);
        uint64_t sum = 0;
        for (int32_t one = 0; one < count; one++)
            sum += of((first + one) % ranks);
        return sum;
    }
    [[nodiscard]] uint64_t of_all() const { return of_several(0, ranks); }

    const CollectiveCall &call;
    const int32_t rank, ranks, root;
    const uint64_t segment;

  private:
    [[nodiscard]] int32_t changed(int32_t one) const {
        if (one == root)
            return 0;
        return one == 0 ? root : one;
    }

    const CollectiveRules &rules_;
    std::vector<Move> &moves_;
};

struct Algorithm {
    const char *name;
    void (*write)(Writer &);
};

// Of a collective: the first is taken where no rule says otherwise, for messages below `long_bytes`; the
// second above.
struct Algorithms {
    uint64_t long_bytes;
    std::vector<Algorithm> all;
};

const Algorithms &algorithms_of(trace_kind kind);

} // namespace wulf
