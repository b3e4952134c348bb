#include "replay/trees.hpp"

#include <algorithm>

namespace wulf {

TreePlace binomial(int32_t own, int32_t ranks) {
    const int32_t top = own == 0 ? power_from(ranks) : own & -own;
    TreePlace place{.parent = own - top, .children = {}};
    for (int32_t distance = 1; distance < top && own + distance < ranks; distance *= 2)
        place.children.push_back(own + distance);
    return place;
}

TreePlace binomial_farthest_first(int32_t own, int32_t ranks) {
    auto place = binomial(own, ranks);
    std::reverse(place.children.begin(), place.children.end());
    return place;
}

TreePlace binomial_nearest_first(int32_t own, int32_t ranks) {
    const int32_t top = own == 0 ? 0 : power_up_to(own);
    TreePlace place{.parent = own - top, .children = {}};
    for (int32_t distance = std::max(1, 2 * top); own + distance < ranks; distance *= 2)
        place.children.push_back(own + distance);
    return place;
}

TreePlace chain(int32_t own, int32_t ranks) {
    TreePlace place{.parent = own - 1, .children = {}};
    if (own + 1 < ranks)
        place.children.push_back(own + 1);
    return place;
}

TreePlace binary(int32_t own, int32_t ranks) {
    const int32_t level = power_up_to(own + 1); // ranks on it
    TreePlace place{.parent = own - level / 2, .children = {}};
    if (place.parent >= level - 1)
        place.parent -= level / 2;
    for (const int32_t child : {own + level, own + 2 * level})
        if (child < ranks)
            place.children.push_back(child);
    return place;
}

TreePlace knomial(int32_t own, int32_t ranks) {
    constexpr int32_t radix = 4;
    int32_t distance = 1;
    while (distance < ranks && own % (radix * distance) == 0)
        distance *= radix;
    TreePlace place{.parent = own - own % (radix * distance), .children = {}};
    for (distance /= radix; distance > 0; distance /= radix)
        for (int32_t child = own + distance; child < std::min(own + radix * distance, ranks);
             child += distance)
            place.children.push_back(child);
    return place;
}

TreePlace in_order(int32_t own, int32_t ranks) {
    TreePlace place;
    for (int32_t first = 0, count = ranks;;) {
        const int32_t top = first + count - 1, half = count > 2 ? count / 2 : 0;
        if (own == top) {
            if (count > 1)
                place.children.push_back(top - 1);
            if (half > 0)
                place.children.push_back(first + half - 1);
            return place;
        }
        place.parent = top;
        const bool is_in_half = own < first + half;
        count = is_in_half ? half : count - 1 - half;
        first += is_in_half ? 0 : half;
    }
}

} // namespace wulf
