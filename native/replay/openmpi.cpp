#include "replay/openmpi.hpp"

#include <sstream>
#include <string>

#include "replay/trace.hpp"

namespace wulf {

namespace {

// COLLECTIVE FROM_RANKS: FROM_BYTES ALGORITHM[/SEGMENT_BYTES], ...

// What all versions of 4.1 and 5.0 decide by themselves for sums whose operands may change places
// (coll/tuned, coll_tuned_decision_fixed.c; coll/basic for what that leaves out), in the words of this
// program: a chain without segments is a pipeline, an exchange of two ranks goes by any algorithm, a ring of
// fewer elements than ranks is recursive doubling, and reducing fewer elements than ranks by halves is
// linear.
constexpr const char *DECISIONS = R"(
barrier 2: 0 recursive_doubling
barrier 4: 0 linear
barrier 8: 0 recursive_doubling
barrier 64: 0 dissemination
barrier 256: 0 tree
barrier 512: 0 dissemination
barrier 1024: 0 tree
barrier 4096: 0 dissemination
bcast 2: 0 pipeline, 32 binary_tree, 256 pipeline, 512 knomial, 1024 basic_linear, 32768 binary_tree
bcast 2: 131072 pipeline, 262144 basic_linear, 524288 binomial_nearest_first, 1048576 binary_tree
bcast 4: 0 binary_tree, 64 binomial_nearest_first, 128 binary_tree, 2048 binomial_nearest_first
bcast 4: 8192 basic_linear, 1048576 pipeline
bcast 8: 0 knomial, 8 binary_tree, 64 knomial, 4096 binary_tree, 16384 binomial_nearest_first
bcast 8: 32768 basic_linear
bcast 16: 0 knomial, 4096 binomial_nearest_first, 1048576 scatter_allgather
bcast 32: 0 binomial_nearest_first, 2048 knomial
bcast 64: 0 knomial
bcast 128: 0 binomial_nearest_first, 2 binary_tree, 16384 basic_linear, 32768 binary_tree, 65536 knomial
bcast 256: 0 knomial, 16384 split_binary_tree, 32768 knomial
bcast 1024: 0 knomial, 524288 scatter_allgather
bcast 2048: 0 knomial, 262144 scatter_allgather
bcast 4096: 0 knomial, 8192 binary_tree, 16384 knomial, 262144 scatter_allgather
reduce 2: 0 linear, 8 binary, 16 pipeline, 32 linear, 262144 pipeline
reduce 4: 0 binary, 4096 pipeline, 65536 binomial, 262144 linear, 524288 binomial, 1048576 linear
reduce 8: 0 binary, 8192 binomial
reduce 16: 0 binary, 4096 binomial
reduce 32: 0 binomial
reduce 256: 0 binomial, 8192 in-order_binary, 16384 binomial
reduce 512: 0 binomial
reduce 2048: 0 binomial, 512 in-order_binary, 1024 binomial, 8192 in-order_binary, 16384 binomial
reduce 4096: 0 binomial, 16 in-order_binary, 32 binomial, 1024 in-order_binary, 2048 binomial
reduce 4096: 8192 in-order_binary, 16384 binomial
allreduce 2: 0 recursive_doubling, 4096 ring, 8192 recursive_doubling, 16384 ring, 262144 rabenseifner
allreduce 4: 0 recursive_doubling, 8192 rabenseifner
allreduce 16: 0 recursive_doubling, 4096 rabenseifner
allreduce 32: 0 recursive_doubling, 128 rabenseifner
allreduce 64: 0 recursive_doubling, 262144 rabenseifner
allreduce 128: 0 nonoverlapping, 131072 recursive_doubling, 262144 rabenseifner
allreduce 256: 0 nonoverlapping, 4096 rabenseifner
allreduce 512: 0 nonoverlapping, 2048 recursive_doubling, 16384 rabenseifner
allreduce 4096: 0 nonoverlapping, 2048 recursive_doubling, 32768 rabenseifner
gather 2: 0 linear_sync, 2 basic_linear, 4 binomial, 32768 basic_linear, 65536 binomial
gather 2: 131072 linear_sync
gather 4: 0 binomial, 1024 basic_linear, 8192 binomial, 32768 basic_linear, 262144 linear_sync
gather 8: 0 binomial
gather 256: 0 binomial, 2048 basic_linear, 8192 binomial
gather 512: 0 binomial
scatter 2: 0 linear_nb, 2 basic_linear, 131072 linear_nb, 262144 basic_linear
scatter 4: 0 binomial, 2048 basic_linear, 4096 binomial, 8192 basic_linear, 32768 linear_nb
scatter 4: 1048576 basic_linear
scatter 8: 0 binomial, 16384 linear_nb, 1048576 basic_linear
scatter 16: 0 binomial, 16384 basic_linear, 32768 linear_nb
scatter 32: 0 binomial, 512 linear_nb, 8192 binomial, 16384 linear_nb
scatter 64: 0 binomial, 512 linear_nb
allgather 2: 0 recursive_doubling
allgather 32: 0 recursive_doubling, 1024 neighbor, 65536 ring
allgather 64: 0 recursive_doubling, 512 neighbor, 65536 ring
allgather 128: 0 recursive_doubling, 512 neighbor, 131072 ring, 524288 neighbor, 1048576 ring
allgather 256: 0 recursive_doubling, 32 bruck, 128 recursive_doubling, 1024 neighbor, 131072 ring
allgather 256: 524288 neighbor, 1048576 ring
allgather 512: 0 recursive_doubling, 64 bruck, 256 recursive_doubling, 2048 neighbor
allgather 1024: 0 recursive_doubling, 4 bruck, 8 recursive_doubling, 16 bruck, 32 recursive_doubling
allgather 1024: 256 bruck, 512 recursive_doubling, 4096 neighbor
allgather 2048: 0 bruck, 32 recursive_doubling, 128 bruck, 512 recursive_doubling, 4096 neighbor
allgather 4096: 0 recursive_doubling, 2 bruck, 8 recursive_doubling, 16 bruck, 512 recursive_doubling
allgather 4096: 4096 neighbor
allgatherv 2: 0 ring
allgatherv 3: 0 default, 256 neighbor, 4096 ring, 8192 neighbor, 16384 bruck, 262144 neighbor
allgatherv 8: 0 default, 1024 bruck
allgatherv 16: 0 default, 128 bruck, 262144 ring
allgatherv 32: 0 default, 256 bruck, 8192 ring
allgatherv 64: 0 default, 256 bruck, 4096 ring
allgatherv 128: 0 bruck, 1024 neighbor, 65536 ring
allgatherv 256: 0 bruck, 1024 ring
allgatherv 512: 0 bruck, 512 default, 1024 bruck, 4096 neighbor, 1048576 ring
allgatherv 1024: 0 bruck, 4096 neighbor
alltoall 2: 0 pairwise, 32768 linear, 262144 pairwise
alltoall 3: 0 linear, 524288 pairwise, 1048576 linear
alltoall 8: 0 linear
alltoall 16: 0 linear, 4 modified_bruck, 512 linear
alltoall 32: 0 modified_bruck, 512 linear
alltoall 64: 0 modified_bruck, 1024 linear, 262144 pairwise
alltoall 256: 0 modified_bruck, 1024 linear, 32768 pairwise
alltoall 512: 0 modified_bruck, 512 linear, 262144 pairwise
alltoall 1024: 0 modified_bruck, 512 linear
alltoall 2048: 0 modified_bruck, 1024 linear
alltoall 4096: 0 modified_bruck, 2048 linear
alltoallv 2: 0 pairwise
alltoallv 4: 0 basic_linear
alltoallv 64: 0 pairwise
alltoallv 128: 0 basic_linear
alltoallv 256: 0 pairwise
alltoallv 1024: 0 basic_linear
reduce_scatter 2: 0 ring, 65536 butterfly, 131072 ring
reduce_scatter 4: 0 non-overlapping, 8 recursive_halving, 262144 ring
reduce_scatter 8: 0 recursive_halving, 262144 ring
reduce_scatter 32: 0 non-overlapping, 64 recursive_halving, 2048 butterfly, 524288 ring
reduce_scatter 64: 0 non-overlapping, 256 recursive_halving, 512 butterfly, 2048 recursive_halving
reduce_scatter 64: 4096 butterfly
reduce_scatter 128: 0 non-overlapping, 256 recursive_halving, 512 butterfly
reduce_scatter 256: 0 non-overlapping, 256 recursive_halving, 1024 butterfly
reduce_scatter 512: 0 non-overlapping, 512 recursive_halving, 2048 butterfly, 8192 recursive_halving
reduce_scatter 512: 16384 butterfly
reduce_scatter 1024: 0 non-overlapping, 512 recursive_halving, 4096 butterfly, 16384 recursive_halving
reduce_scatter 1024: 32768 butterfly
reduce_scatter 2048: 0 non-overlapping, 512 recursive_halving, 4096 butterfly
reduce_scatter 4096: 0 non-overlapping, 1024 recursive_halving, 8192 butterfly
reduce_scatter_block 2: 0 recursive_doubling, 4 butterfly, 8 recursive_halving, 16 butterfly
reduce_scatter_block 2: 128 recursive_halving, 256 butterfly, 4096 recursive_halving, 8192 butterfly
reduce_scatter_block 2: 131072 non-overlapping
reduce_scatter_block 4: 0 recursive_halving, 8 recursive_doubling, 32 butterfly, 256 recursive_halving
reduce_scatter_block 4: 8192 butterfly, 16384 recursive_halving, 1048576 non-overlapping
reduce_scatter_block 8: 0 non-overlapping, 4 recursive_halving, 32 butterfly, 128 recursive_halving
reduce_scatter_block 8: 524288 non-overlapping, 4194304 butterfly
reduce_scatter_block 16: 0 non-overlapping, 32 recursive_halving, 524288 non-overlapping
reduce_scatter_block 16: 2097152 recursive_halving, 4194304 butterfly
reduce_scatter_block 32: 0 recursive_halving, 4 non-overlapping, 16 butterfly, 65536 non-overlapping
reduce_scatter_block 32: 262144 butterfly
gatherv 2: 0 basic_linear
scatterv 2: 0 basic_linear
alltoallw 2: 0 basic_linear
scan 2: 0 linear
exscan 2: 0 linear
)";

// Of collectives that are only begun (coll/libnbc).
constexpr const char *OF_BEGUN = R"(
barrier 2: 0 dissemination
bcast 2: 0 basic_linear
bcast 5: 0 binomial_nearest_first
reduce 2: 0 binomial, 65536 pipeline/8192
reduce 3: 0 rabenseifner
allreduce 2: 0 binomial
allreduce 4: 0 binomial, 65536 rabenseifner
gather 2: 0 linear
scatter 2: 0 linear_nb
gatherv 2: 0 linear
scatterv 2: 0 linear_nb
allgather 2: 0 linear
allgatherv 2: 0 linear
alltoall 2: 0 linear
alltoallv 2: 0 basic_linear
alltoallw 2: 0 basic_linear
reduce_scatter 2: 0 binomial
reduce_scatter_block 2: 0 binomial
scan 2: 0 linear
exscan 2: 0 linear
)";

void add(CollectiveRules &rules, const std::string &text, bool is_begun) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name, choice;
        CollectiveRule rule{};
        if (!std::getline(words >> std::ws, name, ' '))
            continue;
        rule.kind = collective_named(name);
        words >> rule.from_ranks;
        words.ignore();
        while (words >> rule.from_bytes >> choice) {
            std::istringstream parts(choice.substr(0, choice.find(',')));
            std::getline(parts, rule.algorithm, '/');
            rule.segment_bytes = 0;
            parts >> rule.segment_bytes;
            rules.add(rule, is_begun);
        }
    }
}

CollectiveRules openmpi_rules() {
    CollectiveRules found;
    add(found, DECISIONS, false);
    add(found, OF_BEGUN, true);
    return found;
}

} // namespace

const CollectiveRules &rules_of(std::string_view library) {
    static const CollectiveRules none, openmpi = openmpi_rules();
    const bool is_known = library.starts_with("Open MPI v4.1.") || library.starts_with("Open MPI v5.0.");
    return is_known ? openmpi : none;
}

} // namespace wulf
