#include "replay/rooted.hpp"

#include <algorithm>
#include <string>

#include "replay/trace.hpp"
#include "replay/trees.hpp"

namespace wulf {

namespace {

// Segments of a message: calls `each` with the bytes of every one.
template <typename Each> void in_segments(const Writer &to, uint64_t bytes, Each each) {
    constexpr uint64_t most = 1 << 20;
    const uint64_t segment = to.segment == 0 ? std::max<uint64_t>(bytes, 1) : to.segment;
    if (bytes / segment > most)
        throw InputError(std::string(kind_name(to.call.kind)) + " of " + std::to_string(bytes) +
                         " B in segments of " + std::to_string(segment) + " B: these are too many");
    for (uint64_t done = 0; done == 0 || done < bytes; done += segment)
        each(std::min(segment, bytes - done));
}

// Calls `each` with the other ranks, in their order.
template <typename Each> void with_others(int32_t own, int32_t ranks, Each each) {
    for (int32_t other = 0; other < ranks; other++)
        if (other != own)
            each(other);
}

template <Tree TREE> void bcast_by(Writer &to) {
    const int32_t own = to.relative();
    const auto place = TREE(own, to.ranks);
    in_segments(to, to.call.bytes, [&](uint64_t part) {
        if (own != 0)
            to.receive(to.absolute(place.parent), part);
        for (const int32_t child : place.children)
            to.begin_send(to.absolute(child), part);
        to.wait();
    });
}

template <Tree TREE> void reduce_up(Writer &to, uint64_t bytes) {
    const int32_t own = to.relative();
    const auto place = TREE(own, to.ranks);
    in_segments(to, bytes, [&](uint64_t part) {
        for (const int32_t child : place.children)
            to.begin_receive(to.absolute(child), part);
        to.wait();
        for (size_t child = 0; child < place.children.size(); child++)
            to.reduce(part);
        if (own != 0)
            to.send(to.absolute(place.parent), part);
    });
}

template <Tree TREE> void reduce_by(Writer &to) { reduce_up<TREE>(to, to.call.bytes); }

// Parts of a message go down a binomial tree: each rank then has its own.
void scatter_tree(Writer &to, uint64_t bytes, bool is_of_all) {
    const int32_t own = to.relative();
    const auto several = [&](int32_t first, int32_t count) {
        uint64_t sum = 0;
        for (int32_t one = first; one < std::min(first + count, to.ranks); one++)
            sum += is_of_all ? Writer::part(bytes, to.ranks, one) : to.of(to.absolute(one));
        return sum;
    };
    const int32_t top = own == 0 ? power_from(to.ranks) : own & -own;
    if (own != 0)
        to.receive(to.absolute(own - top), several(own, top));
    for (int32_t distance = top / 2; distance > 0; distance /= 2)
        if (own + distance < to.ranks)
            to.send(to.absolute(own + distance), several(own + distance, distance));
}

void bcast_scatter_ring(Writer &to) {
    scatter_tree(to, to.call.bytes, true);
    const int32_t own = to.relative();
    const auto around = [&](int32_t one) { return (one + to.ranks) % to.ranks; };
    const int32_t next = to.absolute(around(own + 1)), last = to.absolute(around(own - 1));
    for (int32_t step = 0; step < to.ranks - 1; step++)
        to.exchange(next, Writer::part(to.call.bytes, to.ranks, around(own - step)), last,
                    Writer::part(to.call.bytes, to.ranks, around(own - step - 1)));
}

// As the ring where the ranks are no power of two: that costs as many bytes.
void bcast_scatter_doubling(Writer &to) {
    if (power_up_to(to.ranks) != to.ranks)
        return bcast_scatter_ring(to);
    scatter_tree(to, to.call.bytes, true);
    const int32_t own = to.relative();
    const auto several = [&](int32_t first, int32_t count) {
        uint64_t sum = 0;
        for (int32_t one = first; one < first + count; one++)
            sum += Writer::part(to.call.bytes, to.ranks, one);
        return sum;
    };
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        const int32_t other = own ^ distance;
        to.exchange(to.absolute(other), several(own & -distance, distance), to.absolute(other),
                    several(other & -distance, distance));
    }
}

// One half goes down each side of a binary tree; then ranks of one side exchange it with those of the other.
void bcast_split_binary(Writer &to) {
    const uint64_t halves[] = {to.call.bytes - to.call.bytes / 2, to.call.bytes / 2};
    const int32_t own = to.relative();
    const size_t side = own % 2 == 0 ? 1 : 0;
    const auto place = binary(own, to.ranks);
    if (own != 0)
        to.receive(to.absolute(place.parent), halves[side]);
    for (size_t child = 0; child < place.children.size(); child++)
        to.send(to.absolute(place.children[child]), halves[own == 0 ? child : side]);
    // Of an even number of ranks the last one has nobody but the root.
    if (to.ranks % 2 == 0 && own == 0)
        to.send(to.absolute(to.ranks - 1), halves[1]);
    else if (to.ranks % 2 == 0 && own == to.ranks - 1)
        to.receive(to.root, halves[1]);
    else if (own != 0) {
        const int32_t other = to.absolute(side == 0 ? own + 1 : own - 1);
        to.exchange(other, halves[side], other, halves[1 - side]);
    }
}

// The last rank has the sum, and gives it to the root.
void reduce_in_order(Writer &to) {
    const int32_t last = to.ranks - 1;
    const auto place = in_order(to.rank, to.ranks);
    for (const int32_t child : place.children)
        to.begin_receive(child, to.call.bytes);
    to.wait();
    for (size_t child = 0; child < place.children.size(); child++)
        to.reduce(to.call.bytes);
    if (to.rank != last)
        to.send(place.parent, to.call.bytes);
    if (to.root == last)
        return;
    if (to.rank == last)
        to.send(to.root, to.call.bytes);
    if (to.rank == to.root)
        to.receive(last, to.call.bytes);
}

// All at once.
void gather_linear(Writer &to) {
    if (to.rank != to.root) {
        to.send(to.root, to.call.bytes);
        return;
    }
    with_others(to.rank, to.ranks, [&](int32_t other) { to.begin_receive(other, to.of(other)); });
    to.wait();
}

// The root asks for each part, and what comes behind it is the empty rest.
void gather_asked(Writer &to) {
    if (to.rank != to.root) {
        to.receive(to.root, 0);
        to.send(to.root, to.call.bytes);
        to.send(to.root, 0);
        return;
    }
    with_others(to.rank, to.ranks, [&](int32_t other) {
        to.begin_receive(other, to.call.bytes);
        to.begin_send(other, 0);
        to.wait();
    });
    with_others(to.rank, to.ranks, [&](int32_t other) { to.receive(other, 0); });
}

void gather_binomial(Writer &to) {
    const int32_t own = to.relative();
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        const auto below = [&](int32_t first) {
            return to.call.bytes * static_cast<uint64_t>(std::min(distance, to.ranks - first));
        };
        if (own & distance) {
            to.send(to.absolute(own - distance), below(own));
            return;
        }
        if (own + distance < to.ranks)
            to.receive(to.absolute(own + distance), below(own + distance));
    }
}

void scatter_binomial(Writer &to) { scatter_tree(to, 0, false); }

} // namespace

void bcast_linear(Writer &to) {
    if (to.rank != to.root) {
        to.receive(to.root, to.call.bytes);
        return;
    }
    with_others(to.rank, to.ranks, [&](int32_t other) { to.begin_send(other, to.call.bytes); });
    to.wait();
}

// One after the other, from the last on.
void reduce_linear(Writer &to) {
    if (to.rank != to.root) {
        to.send(to.root, to.call.bytes);
        return;
    }
    for (int32_t other = to.ranks - 1; other >= 0; other--)
        if (other != to.rank) {
            to.receive(other, to.call.bytes);
            to.reduce(to.call.bytes);
        }
}

// Where all know that a part is empty, it is not sent.
void gather_one_by_one(Writer &to) {
    const auto is_sent = [&](int32_t one) { return to.call.sizes.empty() || to.of(one) > 0; };
    if (to.rank != to.root && is_sent(to.rank))
        to.send(to.root, to.of(to.rank));
    if (to.rank == to.root)
        with_others(to.rank, to.ranks, [&](int32_t other) {
            if (is_sent(other))
                to.receive(other, to.of(other));
        });
}

// All at once.
void scatter_linear(Writer &to) {
    if (to.rank != to.root) {
        to.receive(to.root, to.of(to.rank));
        return;
    }
    with_others(to.rank, to.ranks, [&](int32_t other) { to.begin_send(other, to.of(other)); });
    to.wait();
}

// An empty part is not sent: each rank knows its own.
void scatter_one_by_one(Writer &to) {
    if (to.rank != to.root && to.of(to.rank) > 0)
        to.receive(to.root, to.of(to.rank));
    if (to.rank == to.root)
        with_others(to.rank, to.ranks, [&](int32_t other) {
            if (to.of(other) > 0)
                to.send(other, to.of(other));
        });
}

void bcast_nearest_first(Writer &to) { bcast_by<binomial_nearest_first>(to); }
void reduce_binomial(Writer &to, uint64_t bytes) { reduce_up<binomial>(to, bytes); }

const Algorithms *rooted(trace_kind kind) {
    constexpr uint64_t NEVER = UINT64_MAX;
    static const Algorithms bcast{131072,
                                  {{"binomial", bcast_by<binomial_farthest_first>},
                                   {"scatter_allgather_ring", bcast_scatter_ring},
                                   {"scatter_allgather", bcast_scatter_doubling},
                                   {"binomial_nearest_first", bcast_by<binomial_nearest_first>},
                                   {"binary_tree", bcast_by<binary>},
                                   {"split_binary_tree", bcast_split_binary},
                                   {"knomial", bcast_by<knomial>},
                                   {"pipeline", bcast_by<chain>},
                                   {"basic_linear", bcast_linear}}};
    static const Algorithms reduce{NEVER,
                                   {{"binomial", reduce_by<binomial>},
                                    {"binary", reduce_by<binary>},
                                    {"in-order_binary", reduce_in_order},
                                    {"rabenseifner", reduce_rabenseifner},
                                    {"pipeline", reduce_by<chain>},
                                    {"linear", reduce_linear}}};
    static const Algorithms gather{6144,
                                   {{"binomial", gather_binomial},
                                    {"linear", gather_linear},
                                    {"linear_sync", gather_asked},
                                    {"basic_linear", gather_one_by_one}}};
    static const Algorithms gatherv{NEVER, {{"linear", gather_linear}, {"basic_linear", gather_one_by_one}}};
    static const Algorithms scatter{6144,
                                    {{"binomial", scatter_binomial},
                                     {"linear_nb", scatter_linear},
                                     {"basic_linear", scatter_one_by_one}}};
    static const Algorithms scatterv{NEVER,
                                     {{"linear_nb", scatter_linear}, {"basic_linear", scatter_one_by_one}}};
    switch (kind) {
    case TRACE_BCAST:
        return &bcast;
    case TRACE_REDUCE:
        return &reduce;
    case TRACE_GATHER:
        return &gather;
    case TRACE_GATHERV:
        return &gatherv;
    case TRACE_SCATTER:
        return &scatter;
    case TRACE_SCATTERV:
        return &scatterv;
    default:
        return nullptr;
    }
}

} // namespace wulf
