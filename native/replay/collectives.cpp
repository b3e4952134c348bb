#include "replay/collectives.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "replay/algorithms.hpp"
#include "replay/trace.hpp"

namespace wulf {

namespace {

// What the rules compare: the bytes of a rank's part, of parts that differ the mean, and of a vector of sums
// all of it.
uint64_t deciding_bytes(const CollectiveCall &call) {
    const uint64_t sum = std::accumulate(call.sizes.begin(), call.sizes.end(), uint64_t{0});
    if (call.kind == TRACE_ALLGATHERV && !call.sizes.empty())
        return sum / call.sizes.size();
    return call.kind == TRACE_REDUCE_SCATTER && !call.sizes.empty() ? sum : call.bytes;
}

} // namespace

void Move::refuse(uint64_t bytes) {
    throw InputError("a message of " + std::to_string(bytes) + " B in a collective");
}

trace_kind collective_named(const std::string &name) {
    for (int kind = TRACE_BARRIER; kind <= TRACE_MAKE_COMMUNICATOR; kind++)
        if (name == kind_name(static_cast<trace_kind>(kind)))
            return static_cast<trace_kind>(kind);
    throw InputError("'" + name + "' is no collective");
}

const std::vector<std::string> &algorithms(trace_kind kind) {
    static std::map<trace_kind, std::vector<std::string>> names;
    auto &found = names[kind];
    if (found.empty())
        for (const auto &algorithm : algorithms_of(kind).all)
            found.emplace_back(algorithm.name);
    return found;
}

void CollectiveRules::add(const CollectiveRule &rule) {
    add(rule, false);
    add(rule, true);
}

void CollectiveRules::add(const CollectiveRule &rule, bool is_begun) {
    const auto &known = algorithms(rule.kind);
    const auto found = std::find(known.begin(), known.end(), rule.algorithm);
    if (found == known.end()) {
        std::string all;
        for (const auto &name : known)
            all += (all.empty() ? "" : ", ") + name;
        throw InputError("'" + rule.algorithm + "' is no algorithm of " + kind_name(rule.kind) +
                         "; known are " + all);
    }
    const auto algorithm = static_cast<size_t>(found - known.begin());
    of(rule.kind, is_begun).push_back({rule.from_ranks, rule.from_bytes, algorithm, rule.segment_bytes});
}

void CollectiveRules::add(const CollectiveRules &others) {
    for (size_t one = 0; one < by_kind_.size(); one++)
        by_kind_[one].insert(by_kind_[one].end(), others.by_kind_[one].begin(), others.by_kind_[one].end());
}

const CollectiveRules::Choice *CollectiveRules::find(trace_kind kind, bool is_begun, uint32_t ranks,
                                                     uint64_t bytes) const {
    const auto &choices = by_kind_[place(kind, is_begun)];
    const auto found = std::find_if(choices.rbegin(), choices.rend(), [&](const Choice &one) {
        return ranks >= one.from_ranks && bytes >= one.from_bytes;
    });
    return found == choices.rend() ? nullptr : &*found;
}

void expand(const CollectiveCall &call, const CollectiveRules &rules, std::vector<Move> &moves) {
    if (call.ranks < 2 && call.sources == nullptr)
        return;
    const auto &known = algorithms_of(call.kind);
    const uint64_t bytes = deciding_bytes(call);
    const auto *choice = rules.find(call.kind, call.is_begun, static_cast<uint32_t>(call.ranks), bytes);
    const size_t usual = known.all.size() > 1 && bytes >= known.long_bytes ? 1 : 0;
    Writer writer(call, choice != nullptr ? choice->segment_bytes : 0, rules, moves);
    known.all[choice != nullptr ? choice->algorithm : usual].write(writer);
}

} // namespace wulf
