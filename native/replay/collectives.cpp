#include "replay/collectives.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "replay/trace.hpp"

namespace wulf {

void Move::refuse(uint64_t bytes) {
    throw InputError("a message of " + std::to_string(bytes) + " B in a collective");
}

namespace {

// One rank's part of an algorithm, while it is written down.
class Writer {
  public:
    Writer(const CollectiveCall &of, uint64_t segment_bytes, std::vector<Move> &moves)
        : call(of), rank(of.rank), ranks(of.ranks), root(of.root == TRACE_NOBODY ? 0 : of.root),
          segment(segment_bytes), moves_(moves) {}

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

    // A rank, counted from the root on, and back.
    [[nodiscard]] int32_t relative() const { return (rank - root + ranks) % ranks; }
    [[nodiscard]] int32_t absolute(int32_t one) const { return (one + root) % ranks; }
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

    const CollectiveCall &call;
    const int32_t rank, ranks, root;
    const uint64_t segment;

  private:
    std::vector<Move> &moves_;
};

using Algorithm = void (*)(Writer &);

int32_t power_of_two(int32_t ranks) {
    return static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(ranks)));
}

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

// --- barrier ----------------------------------------------------------------------------------------------

void dissemination(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance *= 2)
        to.exchange(to.beside(distance), 0, to.beside(-distance), 0);
}

void barrier_linear(Writer &to) {
    if (to.rank != 0) {
        to.send(0, 0);
        to.receive(0, 0);
        return;
    }
    for (int32_t other = 1; other < to.ranks; other++)
        to.receive(other, 0);
    for (int32_t other = 1; other < to.ranks; other++)
        to.begin_send(other, 0);
    to.wait();
}

// --- from one to all, and back ----------------------------------------------------------------------------

void bcast_linear(Writer &to) {
    if (to.rank != to.root) {
        to.receive(to.root, to.call.bytes);
        return;
    }
    for (int32_t other = 1; other < to.ranks; other++)
        to.begin_send(to.absolute(other), to.call.bytes);
    to.wait();
}

void bcast_binomial(Writer &to) {
    const int32_t own = to.relative();
    const int32_t top =
        own == 0 ? static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(to.ranks))) : own & -own;
    in_segments(to, to.call.bytes, [&](uint64_t bytes) {
        if (own != 0)
            to.receive(to.absolute(own - top), bytes);
        for (int32_t distance = top / 2; distance > 0; distance /= 2)
            if (own + distance < to.ranks)
                to.begin_send(to.absolute(own + distance), bytes);
        to.wait();
    });
}

void bcast_pipeline(Writer &to) {
    const int32_t own = to.relative();
    in_segments(to, to.call.bytes, [&](uint64_t bytes) {
        if (own > 0)
            to.receive(to.absolute(own - 1), bytes);
        if (own + 1 < to.ranks)
            to.begin_send(to.absolute(own + 1), bytes);
    });
    to.wait();
}

// Parts of a message go down a binomial tree: each rank then has its own.
void scatter_tree(Writer &to, uint64_t bytes, bool is_of_all) {
    const int32_t own = to.relative();
    const auto several = [&](int32_t first, int32_t count) {
        uint64_t sum = 0;
        for (int32_t one = first; one < std::min(first + count, to.ranks); one++)
            sum += is_of_all ? Writer::part(bytes, to.ranks, one) : to.of(to.absolute(one));
        return sum;
    };
    const int32_t top =
        own == 0 ? static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(to.ranks))) : own & -own;
    if (own != 0)
        to.receive(to.absolute(own - top), several(own, top));
    for (int32_t distance = top / 2; distance > 0; distance /= 2)
        if (own + distance < to.ranks)
            to.send(to.absolute(own + distance), several(own + distance, distance));
}

void bcast_scatter_ring(Writer &to) {
    scatter_tree(to, to.call.bytes, true);
    const int32_t own = to.relative();
    for (int32_t step = 0; step < to.ranks - 1; step++) {
        const int32_t sent = (own - step + to.ranks) % to.ranks,
                      received = (own - step - 1 + to.ranks) % to.ranks;
        to.exchange(to.beside(1), Writer::part(to.call.bytes, to.ranks, sent), to.beside(-1),
                    Writer::part(to.call.bytes, to.ranks, received));
    }
}

void reduce_linear(Writer &to) {
    if (to.rank != to.root) {
        to.send(to.root, to.call.bytes);
        return;
    }
    for (int32_t other = 1; other < to.ranks; other++) {
        to.receive(to.absolute(other), to.call.bytes);
        to.reduce(to.call.bytes);
    }
}

void reduce_binomial(Writer &to) {
    const int32_t own = to.relative();
    in_segments(to, to.call.bytes, [&](uint64_t bytes) {
        for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
            if (own & distance) {
                to.send(to.absolute(own - distance), bytes);
                break;
            }
            if (own + distance < to.ranks) {
                to.receive(to.absolute(own + distance), bytes);
                to.reduce(bytes);
            }
        }
    });
}

void reduce_pipeline(Writer &to) {
    const int32_t own = to.relative();
    in_segments(to, to.call.bytes, [&](uint64_t bytes) {
        if (own + 1 < to.ranks) {
            to.receive(to.absolute(own + 1), bytes);
            to.reduce(bytes);
        }
        if (own > 0)
            to.begin_send(to.absolute(own - 1), bytes);
    });
    to.wait();
}

void gather_linear(Writer &to) {
    if (to.rank != to.root) {
        to.send(to.root, to.call.bytes);
        return;
    }
    for (int32_t other = 1; other < to.ranks; other++)
        to.begin_receive(to.absolute(other), to.of(to.absolute(other)));
    to.wait();
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

void scatter_linear(Writer &to) {
    if (to.rank != to.root) {
        to.receive(to.root, to.call.bytes);
        return;
    }
    for (int32_t other = 1; other < to.ranks; other++)
        to.begin_send(to.absolute(other), to.of(to.absolute(other)));
    to.wait();
}

void scatter_binomial(Writer &to) { scatter_tree(to, 0, false); }

// --- sums for all -----------------------------------------------------------------------------------------

// Ranks beyond a power of two give what they have to a neighbour, and get the result from it at the end.
// `inside` is called with the own number among the others, and how to come from such a number to a rank.
template <typename Inside> void folded(Writer &to, Inside inside) {
    const int32_t even = power_of_two(to.ranks), rest = to.ranks - even;
    const bool is_paired = to.rank < 2 * rest;
    if (is_paired && to.rank % 2 == 0) {
        to.send(to.rank + 1, to.call.bytes);
        to.receive(to.rank + 1, to.call.bytes);
        return;
    }
    if (is_paired) {
        to.receive(to.rank - 1, to.call.bytes);
        to.reduce(to.call.bytes);
    }
    inside(is_paired ? to.rank / 2 : to.rank - rest, even,
           [rest](int32_t number) { return number < rest ? 2 * number + 1 : number + rest; });
    if (is_paired)
        to.send(to.rank - 1, to.call.bytes);
}

void allreduce_doubling(Writer &to) {
    folded(to, [&](int32_t own, int32_t ranks, auto rank_of) {
        for (int32_t distance = 1; distance < ranks; distance *= 2) {
            const int32_t other = rank_of(own ^ distance);
            to.exchange(other, to.call.bytes, other, to.call.bytes);
            to.reduce(to.call.bytes);
        }
    });
}

void allreduce_rabenseifner(Writer &to) {
    folded(to, [&](int32_t own, int32_t ranks, auto rank_of) {
        uint64_t bytes = to.call.bytes;
        for (int32_t distance = ranks / 2; distance > 0; distance /= 2) {
            const int32_t other = rank_of(own ^ distance);
            const uint64_t low = bytes - bytes / 2, high = bytes / 2;
            const bool keeps_high = (own & distance) != 0;
            bytes = keeps_high ? high : low;
            to.exchange(other, keeps_high ? low : high, other, bytes);
            to.reduce(bytes);
        }
        std::vector<uint64_t> had{to.call.bytes};
        for (int32_t distance = ranks / 2; distance > 0; distance /= 2)
            had.push_back((own & distance) != 0 ? had.back() / 2 : had.back() - had.back() / 2);
        for (int32_t distance = 1; distance < ranks; distance *= 2) {
            const int32_t other = rank_of(own ^ distance);
            const uint64_t own_part = had.back();
            had.pop_back();
            to.exchange(other, own_part, other, had.back() - own_part);
        }
    });
}

void allreduce_ring(Writer &to) {
    const auto part = [&](int32_t number) {
        return Writer::part(to.call.bytes, to.ranks, ((number % to.ranks) + to.ranks) % to.ranks);
    };
    for (int32_t step = 0; step < to.ranks - 1; step++) {
        to.exchange(to.beside(1), part(to.rank - step), to.beside(-1), part(to.rank - step - 1));
        to.reduce(part(to.rank - step - 1));
    }
    for (int32_t step = 0; step < to.ranks - 1; step++)
        to.exchange(to.beside(1), part(to.rank + 1 - step), to.beside(-1), part(to.rank - step));
}

void allreduce_nonoverlapping(Writer &to) {
    reduce_binomial(to);
    bcast_binomial(to);
}

// Ranks propose a number for a communicator, say whether it is free, and that they are ready to use it: so
// does Open MPI (comm_cid.c).
void agreed_in_three(Writer &to) {
    for (int time = 0; time < 3; time++)
        allreduce_doubling(to);
}

void allreduce_linear(Writer &to) {
    reduce_linear(to);
    bcast_linear(to);
}

// --- from all to all --------------------------------------------------------------------------------------

void allgather_ring(Writer &to) {
    for (int32_t step = 0; step < to.ranks - 1; step++)
        to.exchange(to.beside(1), to.of(to.beside(-step)), to.beside(-1), to.of(to.beside(-step - 1)));
}

void allgather_bruck(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        const int32_t count = std::min(distance, to.ranks - distance);
        to.exchange(to.beside(-distance), to.of_several(to.rank, count), to.beside(distance),
                    to.of_several(to.beside(distance), count));
    }
}

void allgather_doubling(Writer &to) {
    if (power_of_two(to.ranks) != to.ranks)
        return allgather_bruck(to);
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        const int32_t other = to.rank ^ distance;
        to.exchange(other, to.of_several(to.rank & -distance, distance), other,
                    to.of_several(other & -distance, distance));
    }
}

void allgather_neighbor(Writer &to) {
    if (to.ranks % 2 != 0)
        return allgather_ring(to);
    const bool is_even = to.rank % 2 == 0;
    const int32_t near = to.beside(is_even ? 1 : -1), far = to.beside(is_even ? -1 : 1);
    to.exchange(near, to.of(to.rank), near, to.of(near));
    int32_t sent = is_even ? to.rank : near;
    for (int32_t step = 1; step < to.ranks / 2; step++) {
        const int32_t other = step % 2 == 1 ? far : near;
        // What comes is the pair that is so many pairs away, on the side that the step looks to.
        const int32_t way = ((step % 2 == 1) == is_even) ? -1 : 1;
        const int32_t own_pair = to.rank & ~1;
        const int32_t received = ((own_pair + way * 2 * ((step + 1) / 2)) % to.ranks + to.ranks) % to.ranks;
        to.exchange(other, to.of_several(sent, 2), other, to.of_several(received, 2));
        sent = received;
    }
}

void allgather_linear(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance++)
        to.begin_receive(to.beside(-distance), to.of(to.beside(-distance)));
    for (int32_t distance = 1; distance < to.ranks; distance++)
        to.begin_send(to.beside(distance), to.of(to.rank));
    to.wait();
}

void alltoall_linear(Writer &to) {
    // What others send is not known here; a receive needs no size.
    for (int32_t distance = 1; distance < to.ranks; distance++)
        to.begin_receive(to.beside(-distance), to.call.bytes);
    for (int32_t distance = 1; distance < to.ranks; distance++)
        to.begin_send(to.beside(distance), to.of(to.beside(distance)));
    to.wait();
}

void alltoall_pairwise(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance++)
        to.exchange(to.beside(distance), to.of(to.beside(distance)), to.beside(-distance), to.call.bytes);
}

void alltoall_bruck(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        uint64_t blocks = 0;
        for (int32_t block = 1; block < to.ranks; block++)
            blocks += (block & distance) != 0 ? 1 : 0;
        to.exchange(to.beside(distance), blocks * to.call.bytes, to.beside(-distance),
                    blocks * to.call.bytes);
    }
}

// --- sums, scattered --------------------------------------------------------------------------------------

void reduce_scatter_ring(Writer &to) {
    for (int32_t step = 1; step < to.ranks; step++) {
        const uint64_t received = to.of(to.beside(-step - 1));
        to.exchange(to.beside(1), to.of(to.beside(-step)), to.beside(-1), received);
        to.reduce(received);
    }
}

void reduce_scatter_halving(Writer &to) {
    if (power_of_two(to.ranks) != to.ranks)
        return reduce_scatter_ring(to);
    int32_t first = 0;
    for (int32_t half = to.ranks / 2; half > 0; half /= 2) {
        const bool keeps_high = (to.rank & half) != 0;
        const uint64_t low = to.of_several(first, half), high = to.of_several(first + half, half);
        to.exchange(to.rank ^ half, keeps_high ? low : high, to.rank ^ half, keeps_high ? high : low);
        to.reduce(keeps_high ? high : low);
        first += keeps_high ? half : 0;
    }
}

void scan_linear(Writer &to) {
    if (to.rank > 0) {
        to.receive(to.rank - 1, to.call.bytes);
        to.reduce(to.call.bytes);
    }
    if (to.rank + 1 < to.ranks)
        to.send(to.rank + 1, to.call.bytes);
}

void scan_doubling(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        if (to.rank - distance >= 0)
            to.begin_receive(to.rank - distance, to.call.bytes);
        if (to.rank + distance < to.ranks)
            to.begin_send(to.rank + distance, to.call.bytes);
        to.wait();
        if (to.rank - distance >= 0)
            to.reduce(to.call.bytes);
    }
}

// --- between neighbours -----------------------------------------------------------------------------------

void neighbours(Writer &to) {
    for (const int32_t source : *to.call.sources)
        if (source != TRACE_NOBODY)
            to.begin_receive(source, to.call.bytes);
    for (size_t place = 0; place < to.call.targets->size(); place++)
        if ((*to.call.targets)[place] != TRACE_NOBODY)
            to.begin_send((*to.call.targets)[place], to.of(static_cast<int32_t>(place)));
    to.wait();
}

// --- which of them ----------------------------------------------------------------------------------------

struct Named {
    const char *name;
    Algorithm write;
};

// Of a collective: the first is taken where no rule says otherwise, for messages below `long_bytes`; the
// second above.
struct Ways {
    uint64_t long_bytes;
    std::vector<Named> all;
};

const Ways &ways(trace_kind kind) {
    constexpr uint64_t NEVER = UINT64_MAX;
    static const Ways barrier{NEVER, {{"recursive_doubling", dissemination}, {"linear", barrier_linear}}};
    static const Ways bcast{131072,
                            {{"binomial", bcast_binomial},
                             {"scatter_allgather_ring", bcast_scatter_ring},
                             {"pipeline", bcast_pipeline},
                             {"basic_linear", bcast_linear}}};
    static const Ways reduce{
        NEVER, {{"binomial", reduce_binomial}, {"pipeline", reduce_pipeline}, {"linear", reduce_linear}}};
    static const Ways allreduce{16384,
                                {{"recursive_doubling", allreduce_doubling},
                                 {"ring", allreduce_ring},
                                 {"rabenseifner", allreduce_rabenseifner},
                                 {"nonoverlapping", allreduce_nonoverlapping},
                                 {"basic_linear", allreduce_linear}}};
    static const Ways gather{6144, {{"binomial", gather_binomial}, {"basic_linear", gather_linear}}};
    static const Ways gatherv{NEVER, {{"basic_linear", gather_linear}}};
    static const Ways scatter{6144, {{"binomial", scatter_binomial}, {"basic_linear", scatter_linear}}};
    static const Ways scatterv{NEVER, {{"basic_linear", scatter_linear}}};
    static const Ways allgather{16384,
                                {{"recursive_doubling", allgather_doubling},
                                 {"ring", allgather_ring},
                                 {"bruck", allgather_bruck},
                                 {"neighbor", allgather_neighbor},
                                 {"linear", allgather_linear}}};
    static const Ways allgatherv{8192,
                                 {{"bruck", allgather_bruck},
                                  {"ring", allgather_ring},
                                  {"neighbor", allgather_neighbor},
                                  {"linear", allgather_linear}}};
    static const Ways alltoall{
        3000,
        {{"linear", alltoall_linear}, {"pairwise", alltoall_pairwise}, {"modified_bruck", alltoall_bruck}}};
    static const Ways alltoallv{NEVER, {{"pairwise", alltoall_pairwise}, {"basic_linear", alltoall_linear}}};
    static const Ways reduce_scatter{
        65536, {{"recursive_halving", reduce_scatter_halving}, {"ring", reduce_scatter_ring}}};
    static const Ways scan{NEVER, {{"recursive_doubling", scan_doubling}, {"linear", scan_linear}}};
    static const Ways neighbourhood{NEVER, {{"linear", neighbours}}};
    static const Ways made{
        NEVER, {{"agreed_in_three", agreed_in_three}, {"recursive_doubling", allreduce_doubling}}};
    static const std::map<trace_kind, const Ways *> all{
        {TRACE_BARRIER, &barrier},
        {TRACE_BCAST, &bcast},
        {TRACE_GATHER, &gather},
        {TRACE_GATHERV, &gatherv},
        {TRACE_SCATTER, &scatter},
        {TRACE_SCATTERV, &scatterv},
        {TRACE_ALLGATHER, &allgather},
        {TRACE_ALLGATHERV, &allgatherv},
        {TRACE_ALLTOALL, &alltoall},
        {TRACE_ALLTOALLV, &alltoallv},
        {TRACE_ALLTOALLW, &alltoallv},
        {TRACE_REDUCE, &reduce},
        {TRACE_ALLREDUCE, &allreduce},
        {TRACE_REDUCE_SCATTER, &reduce_scatter},
        {TRACE_REDUCE_SCATTER_BLOCK, &reduce_scatter},
        {TRACE_SCAN, &scan},
        {TRACE_EXSCAN, &scan},
        {TRACE_NEIGHBOR_ALLGATHER, &neighbourhood},
        {TRACE_NEIGHBOR_ALLGATHERV, &neighbourhood},
        {TRACE_NEIGHBOR_ALLTOALL, &neighbourhood},
        {TRACE_NEIGHBOR_ALLTOALLV, &neighbourhood},
        {TRACE_NEIGHBOR_ALLTOALLW, &neighbourhood},
        {TRACE_MAKE_COMMUNICATOR, &made},
    };
    return *all.at(kind);
}

} // namespace

const std::vector<std::string> &algorithms(trace_kind kind) {
    static std::map<trace_kind, std::vector<std::string>> names;
    auto &found = names[kind];
    if (found.empty())
        for (const auto &way : ways(kind).all)
            found.emplace_back(way.name);
    return found;
}

void expand(const CollectiveCall &call, const CollectiveRules &rules, std::vector<Move> &moves) {
    if (call.ranks < 2 && call.sources == nullptr)
        return;
    const auto &known = ways(call.kind);
    const bool is_long = known.all.size() > 1 && call.bytes >= known.long_bytes;
    const Named *chosen = &known.all[is_long ? 1 : 0];
    uint64_t segment_bytes = 0;
    for (const auto &rule : rules) {
        if (rule.kind != call.kind || static_cast<uint32_t>(call.ranks) < rule.from_ranks ||
            call.bytes < rule.from_bytes)
            continue;
        for (const auto &way : known.all)
            if (rule.algorithm == way.name) {
                chosen = &way;
                segment_bytes = rule.segment_bytes;
            }
    }
    Writer writer(call, segment_bytes, moves);
    chosen->write(writer);
}

} // namespace wulf
