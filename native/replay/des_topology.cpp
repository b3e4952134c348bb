#include "replay/des_topology.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "replay/des_queue.hpp"
#include "replay/trace.hpp"

namespace wulf {

namespace {

constexpr uint32_t CORE = UINT32_MAX;
constexpr size_t MOST_SWITCHES = 2048; // there is a route for each two

class Reader {
  public:
    Reader(std::istream &input, std::string name) : input_(input), name_(std::move(name)) {}

    Topology topology(uint32_t nodes) {
        switch_of_.resize(nodes, CORE);
        for (std::string line; std::getline(input_, line);) {
            number_++;
            std::istringstream words(line);
            std::string first;
            if (words >> first && first[0] != '#')
                statement(first, words);
        }
        for (size_t node = 0; node < switch_of_.size(); node++)
            if (switch_of_[node] == CORE)
                throw InputError(name_ + ": node " + std::to_string(node) + " is at no switch");
        return {std::move(switch_of_), std::move(ns_per_byte_), above()};
    }

  private:
    [[noreturn]] void fail(size_t line, const std::string &what) const {
        throw InputError(name_ + ":" + std::to_string(line) + ": " + what);
    }

    std::string word(std::istringstream &words, const char *what) const {
        std::string found;
        if (!(words >> found))
            fail(number_, std::string(what) + " is missing");
        return found;
    }

    void statement(const std::string &what, std::istringstream &words) {
        if (what == "uplink") {
            const auto name = word(words, "a switch");
            double bytes_per_s = 0;
            if (!(words >> bytes_per_s) || !std::isfinite(bytes_per_s) || bytes_per_s <= 0)
                fail(number_, "its bytes per second, above 0, are missing");
            if (!numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size())).second)
                fail(number_, "switch '" + name + "' was given before");
            if (numbers_.size() > MOST_SWITCHES)
                fail(number_, "more than " + std::to_string(MOST_SWITCHES) + " switches");
            ns_per_byte_.push_back(1e9 / bytes_per_s);
            lines_.push_back(number_);
            std::string above;
            words >> above;
            above_.push_back(above);
        } else if (what == "node") {
            uint32_t node = 0;
            if (!(words >> node) || node >= switch_of_.size())
                fail(number_,
                     "a number of a node below " + std::to_string(switch_of_.size()) + " is missing");
            const auto name = word(words, "its switch");
            const auto found = numbers_.find(name);
            if (found == numbers_.end())
                fail(number_, "switch '" + name + "' has no line before");
            switch_of_[node] = found->second;
        } else {
            fail(number_, "'" + what + "' is none of uplink, node");
        }
        std::string rest;
        if (words >> rest)
            fail(number_, "'" + rest + "' is too much");
    }

    // Of each switch the one above it; circles are none.
    std::vector<uint32_t> above() const {
        std::vector<uint32_t> found(above_.size(), CORE);
        for (size_t one = 0; one < above_.size(); one++)
            if (!above_[one].empty()) {
                const auto there = numbers_.find(above_[one]);
                if (there == numbers_.end())
                    fail(lines_[one], "switch '" + above_[one] + "' is nowhere");
                found[one] = there->second;
            }
        for (size_t one = 0; one < found.size(); one++) {
            size_t climbed = 0;
            for (uint32_t at = found[one]; at != CORE; at = found[at])
                if (++climbed > found.size())
                    fail(lines_[one], "its uplinks lead in a circle");
            if (climbed >= EventQueue::MOST_UPLINKS / 2)
                fail(lines_[one], "more than " + std::to_string(EventQueue::MOST_UPLINKS / 2) +
                                      " switches one above another");
        }
        return found;
    }

    std::istream &input_;
    std::string name_;
    size_t number_ = 0;
    std::vector<uint32_t> switch_of_;
    std::map<std::string, uint32_t> numbers_;
    std::vector<double> ns_per_byte_;
    std::vector<std::string> above_;
    std::vector<size_t> lines_; // of each uplink
};

} // namespace

Topology::Topology(std::vector<uint32_t> switch_of, std::vector<double> ns_per_byte,
                   const std::vector<uint32_t> &above)
    : switch_of_(std::move(switch_of)), ns_per_byte_(std::move(ns_per_byte)), switches_(ns_per_byte_.size()) {
    const auto climb = [&](uint32_t from) {
        std::vector<uint32_t> path;
        for (uint32_t at = from; at != CORE; at = above[at])
            path.push_back(at);
        return path;
    };
    routes_.resize(switches_ * switches_);
    for (uint32_t from = 0; from < switches_; from++)
        for (uint32_t to = 0; to < switches_; to++) {
            auto up = climb(from), down = climb(to);
            while (!up.empty() && !down.empty() && up.back() == down.back()) {
                up.pop_back();
                down.pop_back();
            }
            const auto first = static_cast<uint32_t>(ways_.size());
            for (const uint32_t one : up)
                ways_.push_back(2 * one);
            std::for_each(down.rbegin(), down.rend(), [&](uint32_t one) { ways_.push_back(2 * one + 1); });
            routes_[from * switches_ + to] = {first, static_cast<uint32_t>(ways_.size()) - first};
        }
}

Topology read_topology(std::istream &input, const std::string &name, uint32_t nodes) {
    return Reader(input, name).topology(nodes);
}

} // namespace wulf
