#include "replay/algorithms.hpp"

#include <algorithm>
#include <map>

#include "replay/rooted.hpp"
#include "replay/trees.hpp"

namespace wulf {

namespace {

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
        to.begin_receive(other, 0);
    to.wait();
    for (int32_t other = 1; other < to.ranks; other++)
        to.begin_send(other, 0);
    to.wait();
}

// Ranks beyond a power of two have one of the others ask for them.
void barrier_doubling(Writer &to) {
    const int32_t even = power_up_to(to.ranks), rest = to.ranks - even;
    if (to.rank >= even) {
        to.exchange(to.rank - even, 0, to.rank - even, 0);
        return;
    }
    if (to.rank < rest)
        to.receive(to.rank + even, 0);
    for (int32_t distance = 1; distance < even; distance *= 2)
        to.exchange(to.rank ^ distance, 0, to.rank ^ distance, 0);
    if (to.rank < rest)
        to.send(to.rank + even, 0);
}

void barrier_tree(Writer &to) {
    const auto place = binomial(to.rank, to.ranks);
    for (const int32_t child : place.children)
        to.receive(child, 0);
    if (to.rank != 0) {
        to.send(place.parent, 0);
        to.receive(place.parent, 0);
    }
    for (auto child = place.children.rbegin(); child != place.children.rend(); child++)
        to.send(*child, 0);
}

// --- sums for all -----------------------------------------------------------------------------------------

// Ranks beyond a power of two: of each of the first pairs one gives what it has to the other, and takes no
// more part. The others have numbers.
struct Folded {
    explicit Folded(int32_t ranks) : even(power_up_to(ranks)), rest(ranks - even) {}

    [[nodiscard]] bool is_paired(int32_t rank) const { return rank < 2 * rest; }
    [[nodiscard]] bool is_second(int32_t rank) const { return is_paired(rank) && rank % 2 != 0; }
    [[nodiscard]] int32_t number(int32_t rank) const { return is_paired(rank) ? rank / 2 : rank - rest; }
    // Where the second of each pair stays, and where the first does.
    [[nodiscard]] int32_t second(int32_t number) const {
        return number < rest ? 2 * number + 1 : number + rest;
    }
    [[nodiscard]] int32_t first(int32_t number) const { return number < rest ? 2 * number : number + rest; }

    const int32_t even, rest;
};

// Whether the rank stays: the first of a pair gives all it has to the second, and does not.
bool folds_in(Writer &to, const Folded &folded, uint64_t bytes) {
    if (!folded.is_paired(to.rank))
        return true;
    if (to.rank % 2 == 0) {
        to.send(to.rank + 1, bytes);
        return false;
    }
    to.receive(to.rank - 1, bytes);
    to.reduce(bytes);
    return true;
}

void allreduce_doubling(Writer &to) {
    const Folded folded(to.ranks);
    if (!folds_in(to, folded, to.call.bytes)) {
        to.receive(to.rank + 1, to.call.bytes);
        return;
    }
    for (int32_t distance = 1; distance < folded.even; distance *= 2) {
        const int32_t other = folded.second(folded.number(to.rank) ^ distance);
        to.exchange(other, to.call.bytes, other, to.call.bytes);
        to.reduce(to.call.bytes);
    }
    if (folded.is_paired(to.rank))
        to.send(to.rank - 1, to.call.bytes);
}

// Sums of ever smaller parts. Of a pair beyond a power of two each adds up a half first, and the first of
// them stays: whether this rank does.
bool folds_halves_in(Writer &to, const Folded &folded) {
    const uint64_t low = to.call.bytes / 2, high = to.call.bytes - low;
    if (!folded.is_paired(to.rank))
        return true;
    if (folded.is_second(to.rank)) {
        to.exchange(to.rank - 1, low, to.rank - 1, high);
        to.reduce(high);
        to.send(to.rank - 1, high);
        return false;
    }
    to.exchange(to.rank + 1, high, to.rank + 1, low);
    to.reduce(low);
    to.receive(to.rank + 1, high);
    return true;
}

// What a rank had before each step, and has after the last [bytes].
std::vector<uint64_t> sums_of_parts(Writer &to, const Folded &folded) {
    std::vector<uint64_t> had{to.call.bytes};
    for (int32_t distance = 1; distance < folded.even; distance *= 2) {
        const int32_t other = folded.first(folded.number(to.rank) ^ distance);
        const uint64_t kept = to.rank < other ? had.back() / 2 : had.back() - had.back() / 2;
        to.exchange(other, had.back() - kept, other, kept);
        to.reduce(kept);
        had.push_back(kept);
    }
    return had;
}

// The parts are gathered the way that they came.
void allreduce_rabenseifner(Writer &to) {
    const Folded folded(to.ranks);
    if (!folds_halves_in(to, folded)) {
        to.receive(to.rank - 1, to.call.bytes);
        return;
    }
    auto had = sums_of_parts(to, folded);
    for (int32_t distance = folded.even / 2; distance > 0; distance /= 2) {
        const int32_t other = folded.first(folded.number(to.rank) ^ distance);
        const uint64_t own = had.back();
        had.pop_back();
        to.exchange(other, own, other, had.back() - own);
    }
    if (folded.is_paired(to.rank))
        to.send(to.rank + 1, to.call.bytes);
}

// Parts of `had` go to the root along a binomial tree; a root that left takes the place of rank 0.
void gather_parts(Writer &to, const Folded &folded, int32_t own, std::vector<uint64_t> had) {
    const bool has_left = folded.is_second(to.root);
    const int32_t root = has_left ? 0 : folded.number(to.root);
    for (int32_t distance = folded.even / 2; distance > 0; distance /= 2) {
        const int32_t number = own ^ distance;
        const int32_t other = number == 0 && has_left ? to.root : folded.first(number);
        const uint64_t part = had.back();
        if ((number & -distance) == (root & -distance)) {
            to.send(other, part);
            return;
        }
        had.pop_back();
        to.receive(other, had.back() - part);
    }
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
    to.another(TRACE_REDUCE, to.call.bytes);
    to.another(TRACE_BCAST, to.call.bytes);
}

void allreduce_binomial(Writer &to) {
    reduce_binomial(to, to.call.bytes);
    bcast_nearest_first(to);
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
    if (power_up_to(to.ranks) != to.ranks)
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

void allgatherv_by_rank_0(Writer &to) {
    gather_one_by_one(to);
    to.another(TRACE_BCAST, to.of_all());
}

// --- sums, scattered --------------------------------------------------------------------------------------

void reduce_scatter_ring(Writer &to) {
    for (int32_t step = 1; step < to.ranks; step++) {
        const uint64_t received = to.of(to.beside(-step - 1));
        to.exchange(to.beside(1), to.of(to.beside(-step)), to.beside(-1), received);
        to.reduce(received);
    }
}

// Bytes of `count` numbers from one on: that of a pair has those of both.
uint64_t of_numbers(const Writer &to, const Folded &folded, int32_t first, int32_t count) {
    return to.of_several(folded.first(first), folded.first(first + count) - folded.first(first));
}

// Of twice so many numbers from one on, who is at a distance and this rank keep the sums of a half each.
// Returns the first that this rank keeps.
int32_t keep_half(Writer &to, const Folded &folded, int32_t distance, int32_t first, int32_t count) {
    const int32_t own = folded.number(to.rank), other = folded.second(own ^ distance);
    const int32_t high = first + count, kept = (own & distance) != 0 ? high : first;
    const uint64_t bytes = of_numbers(to, folded, kept, count);
    to.exchange(other, of_numbers(to, folded, kept == first ? high : first, count), other, bytes);
    to.reduce(bytes);
    return kept;
}

void reduce_scatter_halving(Writer &to) {
    const Folded folded(to.ranks);
    if (!folds_in(to, folded, to.of_all())) {
        to.receive(to.rank + 1, to.of(to.rank));
        return;
    }
    int32_t first = 0;
    for (int32_t half = folded.even / 2; half > 0; half /= 2)
        first = keep_half(to, folded, half, first, half);
    if (folded.is_paired(to.rank))
        to.send(to.rank - 1, to.of(to.rank - 1));
}

int32_t mirrored(int32_t number, int32_t even) {
    int32_t found = 0;
    for (int32_t bit = 1; bit < even; bit *= 2)
        found = 2 * found + ((number & bit) != 0 ? 1 : 0);
    return found;
}

// Neighbours first: each number then has the part of the one whose bits are in the other order.
void reduce_scatter_butterfly(Writer &to) {
    const Folded folded(to.ranks);
    const int32_t meant = mirrored(folded.number(to.rank), folded.even);
    if (!folds_in(to, folded, to.of_all())) {
        to.receive(folded.second(meant), to.of(to.rank));
        return;
    }
    int32_t first = 0;
    for (int32_t distance = 1; distance < folded.even; distance *= 2)
        first = keep_half(to, folded, distance, first, folded.even / (2 * distance));
    // Equal parts of as many ranks as there are numbers were put into the other order before.
    if (folded.rest == 0 && to.call.sizes.empty())
        return;
    const int32_t other = folded.second(meant);
    if (folded.is_paired(other))
        to.send(other - 1, to.of(other - 1));
    if (other != to.rank)
        to.exchange(other, to.of(other), other, to.of(to.rank));
}

// Each exchanges all but what the ranks around it have. Where there is nobody to do so with, what one rank
// got goes on to its neighbours by halves.
void reduce_scatter_doubling(Writer &to) {
    for (int32_t distance = 1; distance < to.ranks; distance *= 2) {
        const auto all_but = [&](int32_t first) {
            return to.of_all() - to.of_several(first, std::min(distance, to.ranks - first));
        };
        const int32_t other = to.rank ^ distance, own_first = to.rank & -distance,
                      other_first = other & -distance;
        if (other < to.ranks) {
            to.exchange(other, all_but(own_first), other, all_but(other_first));
            to.reduce(all_but(other_first));
        }
        // How many of those around this rank had somebody.
        const int32_t had = other_first + distance > to.ranks ? to.ranks - own_first - distance : 0;
        for (int32_t half = distance / 2; half > 0 && had > 0; half /= 2) {
            const int32_t neighbour = to.rank ^ half, end = (to.rank & -2 * half) + had;
            if (to.rank < end && neighbour >= end)
                to.send(neighbour, all_but(other_first));
            else if (neighbour < end && to.rank >= end)
                to.receive(neighbour, all_but(other_first));
        }
    }
}

void reduce_scatter_nonoverlapping(Writer &to) {
    to.another(TRACE_REDUCE, to.of_all());
    if (to.call.sizes.empty())
        to.another(TRACE_SCATTER, to.call.bytes);
    else
        scatter_one_by_one(to);
}

void reduce_scatter_binomial(Writer &to) {
    reduce_binomial(to, to.of_all());
    scatter_linear(to);
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

} // namespace

// Of fewer sums than ranks along a tree.
void reduce_rabenseifner(Writer &to) {
    const Folded folded(to.ranks);
    if (to.call.bytes / sizeof(double) < static_cast<uint64_t>(folded.even))
        return reduce_binomial(to, to.call.bytes);
    const bool stays = folds_halves_in(to, folded);
    std::vector<uint64_t> had{to.call.bytes};
    if (stays)
        had = sums_of_parts(to, folded);
    const bool is_root_out = folded.is_second(to.root);
    if (is_root_out && to.rank == 0) {
        to.send(to.root, had.back());
    } else if (is_root_out && to.rank == to.root) {
        for (int32_t distance = 1; distance < folded.even; distance *= 2)
            had.push_back(had.back() / 2);
        to.receive(0, had.back());
        gather_parts(to, folded, 0, had);
    } else if (stays) {
        gather_parts(to, folded, folded.number(to.rank), had);
    }
}

const Algorithms &algorithms_of(trace_kind kind) {
    constexpr uint64_t NEVER = UINT64_MAX;
    static const Algorithms barrier{NEVER,
                                    {{"dissemination", dissemination},
                                     {"linear", barrier_linear},
                                     {"recursive_doubling", barrier_doubling},
                                     {"tree", barrier_tree}}};
    static const Algorithms allreduce{16384,
                                      {{"recursive_doubling", allreduce_doubling},
                                       {"ring", allreduce_ring},
                                       {"rabenseifner", allreduce_rabenseifner},
                                       {"nonoverlapping", allreduce_nonoverlapping},
                                       {"binomial", allreduce_binomial},
                                       {"basic_linear", allreduce_linear}}};
    static const Algorithms allgather{16384,
                                      {{"recursive_doubling", allgather_doubling},
                                       {"ring", allgather_ring},
                                       {"bruck", allgather_bruck},
                                       {"neighbor", allgather_neighbor},
                                       {"linear", allgather_linear}}};
    static const Algorithms allgatherv{8192,
                                       {{"bruck", allgather_bruck},
                                        {"ring", allgather_ring},
                                        {"neighbor", allgather_neighbor},
                                        {"default", allgatherv_by_rank_0},
                                        {"linear", allgather_linear}}};
    static const Algorithms alltoall{
        3000,
        {{"linear", alltoall_linear}, {"pairwise", alltoall_pairwise}, {"modified_bruck", alltoall_bruck}}};
    static const Algorithms alltoallv{NEVER,
                                      {{"pairwise", alltoall_pairwise}, {"basic_linear", alltoall_linear}}};
    static const Algorithms reduce_scatter{65536,
                                           {{"recursive_halving", reduce_scatter_halving},
                                            {"ring", reduce_scatter_ring},
                                            {"butterfly", reduce_scatter_butterfly},
                                            {"recursive_doubling", reduce_scatter_doubling},
                                            {"non-overlapping", reduce_scatter_nonoverlapping},
                                            {"binomial", reduce_scatter_binomial}}};
    static const Algorithms scan{NEVER, {{"recursive_doubling", scan_doubling}, {"linear", scan_linear}}};
    static const Algorithms neighbourhood{NEVER, {{"linear", neighbours}}};
    static const Algorithms made{
        NEVER, {{"agreed_in_three", agreed_in_three}, {"recursive_doubling", allreduce_doubling}}};
    static const std::map<trace_kind, const Algorithms *> all{
        {TRACE_BARRIER, &barrier},
        {TRACE_ALLGATHER, &allgather},
        {TRACE_ALLGATHERV, &allgatherv},
        {TRACE_ALLTOALL, &alltoall},
        {TRACE_ALLTOALLV, &alltoallv},
        {TRACE_ALLTOALLW, &alltoallv},
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
    const auto *from_one = rooted(kind);
    return from_one != nullptr ? *from_one : *all.at(kind);
}

} // namespace wulf
