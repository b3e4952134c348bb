// Which communicators of different ranks are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

namespace wulf {

// A communicator, the same for all its members.
struct Communicator {
    std::span<const int32_t> members; // ranks of the world
    bool inter = false;
};

// One rank's view of a communicator.
struct LocalCommunicator {
    static constexpr uint32_t NONE = UINT32_MAX;
    uint32_t global = NONE; // which of Communicators::communicators
    int32_t rank = 0;
    std::vector<int32_t> sources{}, targets{}; // neighbours, as ranks of the communicator
};

// How many communicators of each list of members a rank has made so far.
using CommunicatorsOfRank = std::unordered_map<uint32_t, uint32_t>;

// Communicators are the same where their members are, in the same order, and as many of the same members were
// made before: making one is collective. Lists of members are kept once, however many ranks and communicators
// have them.
class Communicators {
  public:
    static constexpr uint32_t NONE = UINT32_MAX;
    // The number of a list of members, or NONE.
    [[nodiscard]] uint32_t find(std::span<const int32_t> members) const;
    // The number of a list that is not known yet.
    uint32_t add(std::span<const int32_t> members);
    // The communicator that a rank makes next of this list.
    uint32_t make(uint32_t list, bool inter, CommunicatorsOfRank &made);
    [[nodiscard]] const std::vector<Communicator> &communicators() const { return communicators_; }

  private:
    struct List {
        std::vector<int32_t> members;
        std::vector<uint32_t> communicators; // in the order in which they were made
    };

    std::deque<List> lists_; // which never move
    std::unordered_multimap<size_t, uint32_t> by_hash_;
    std::vector<Communicator> communicators_;
};

} // namespace wulf
