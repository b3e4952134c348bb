// Trees of ranks, which are counted from the root on.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace wulf {

// The last power of two up to a number above 0, and the first from it on.
inline int32_t power_up_to(int32_t number) {
    return static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(number)));
}
inline int32_t power_from(int32_t number) {
    return static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(number)));
}

// Where a rank is in a tree; ranks are counted from the root on. The root has no parent.
struct TreePlace {
    int32_t parent = 0;
    std::vector<int32_t> children; // in the order in which they are served
};

using Tree = TreePlace (*)(int32_t own, int32_t ranks);

// The parent lacks the lowest bit.
TreePlace binomial(int32_t own, int32_t ranks);
TreePlace binomial_farthest_first(int32_t own, int32_t ranks);
// The parent lacks the highest bit.
TreePlace binomial_nearest_first(int32_t own, int32_t ranks);
TreePlace chain(int32_t own, int32_t ranks);
// Level by level: below 0 are 1 and 2, below 1 are 3 and 5, below 2 are 4 and 6.
TreePlace binary(int32_t own, int32_t ranks);
TreePlace knomial(int32_t own, int32_t ranks);
// Operands keep the order of their ranks: the root of a subtree is its last rank, the first half is below
// its second child.
TreePlace in_order(int32_t own, int32_t ranks);

} // namespace wulf
