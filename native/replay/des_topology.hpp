// How switches are connected: which nodes share which uplinks.
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wulf {

// Every node has an interface, and whatever is between two nodes has no limit but these uplinks.
class Topology {
  public:
    // Without uplinks.
    Topology() = default;
    // Of each node its switch; of each uplink its time for a byte [ns]. `above`: the uplink that a switch's
    // uplink leads to the switch of, or NONE for the core. Uplink and switch have the same number.
    Topology(std::vector<uint32_t> switch_of, std::vector<double> ns_per_byte,
             const std::vector<uint32_t> &above);

    // The uplinks between two nodes, in order: those up, then those down; each way of an uplink has a number.
    [[nodiscard]] std::span<const uint32_t> route(uint32_t from, uint32_t to) const {
        if (switch_of_.empty())
            return {};
        const auto &[first, count] = routes_[switch_of_[from] * switches_ + switch_of_[to]];
        return {ways_.data() + first, count};
    }
    [[nodiscard]] double ns_per_byte(uint32_t way) const { return ns_per_byte_[way / 2]; }
    [[nodiscard]] size_t ways() const { return 2 * ns_per_byte_.size(); }
    // How many nodes it knows; 0: any number.
    [[nodiscard]] size_t nodes() const { return switch_of_.size(); }

  private:
    std::vector<uint32_t> switch_of_;
    std::vector<double> ns_per_byte_;
    size_t switches_ = 0;
    std::vector<std::pair<uint32_t, uint32_t>> routes_; // of two switches: first of ways_, how many
    std::vector<uint32_t> ways_;
};

// Read a topology:
//
//     uplink SWITCH BYTES_PER_SECOND [ABOVE]
//     node NUMBER SWITCH
//
// a line each. ABOVE is the switch that the uplink leads to; without it the core, which has no limit. Nodes
// from 0 to `nodes` - 1 must all be there. Throws InputError with the line.
Topology read_topology(std::istream &input, const std::string &name, uint32_t nodes);

} // namespace wulf
