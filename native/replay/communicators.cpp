#include "replay/communicators.hpp"

#include <algorithm>
#include <string_view>

namespace wulf {

namespace {

size_t hash_of(std::span<const int32_t> members) {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char *>(members.data()), members.size_bytes()});
}

} // namespace

uint32_t Communicators::find(std::span<const int32_t> members) const {
    const auto [first, last] = by_hash_.equal_range(hash_of(members));
    for (auto one = first; one != last; ++one)
        if (std::ranges::equal(lists_[one->second].members, members))
            return one->second;
    return NONE;
}

uint32_t Communicators::add(std::span<const int32_t> members) {
    const auto number = static_cast<uint32_t>(lists_.size());
    lists_.push_back({{members.begin(), members.end()}, {}});
    by_hash_.emplace(hash_of(members), number);
    return number;
}

uint32_t Communicators::make(uint32_t list, bool inter, CommunicatorsOfRank &made) {
    auto &of_list = lists_[list];
    const uint32_t before = made[list]++;
    if (before == of_list.communicators.size()) {
        of_list.communicators.push_back(static_cast<uint32_t>(communicators_.size()));
        communicators_.push_back({of_list.members, inter});
    }
    return of_list.communicators[before];
}

} // namespace wulf
