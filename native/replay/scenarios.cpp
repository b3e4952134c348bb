#include "replay/scenarios.hpp"

#include <algorithm>
#include <atomic>
#include <future>

namespace wulf {

namespace {

size_t groups_of(size_t count) { return std::max<size_t>((count + LANES - 1) / LANES, 1); }

} // namespace

Evaluators::Evaluators(const Plan &plan, size_t wanted) {
    const uint64_t each = std::max<uint64_t>(plan.steps.size() * sizeof(uint16_t), 1);
    const auto threads = std::clamp<uint64_t>(available_bytes() / each, 1, std::max<size_t>(wanted, 1));
    for (size_t one = 0; one < threads; one++)
        evaluators_.emplace_back(plan);
}

void Evaluators::each_group(size_t count, const std::function<void(Evaluator &, size_t, size_t)> &evaluate) {
    std::atomic<size_t> next = 0;
    const auto take_groups = [&](Evaluator &evaluator) {
        for (size_t first = LANES * next++; first < count; first = LANES * next++)
            evaluate(evaluator, first, std::min(LANES, count - first));
    };
    std::vector<std::future<void>> others; // which wait for their threads also where one throws
    for (size_t one = 1; one < std::min(evaluators_.size(), groups_of(count)); one++)
        others.push_back(std::async(std::launch::async, [&, one] { take_groups(evaluators_[one]); }));
    take_groups(evaluators_.front());
    for (auto &other : others)
        other.get();
}

Scenarios evaluate_all(const Plan &plan, std::span<const Network> networks, size_t threads, bool with_hops) {
    Scenarios found;
    found.paths.resize(networks.size());
    Evaluators evaluators(plan, std::min(threads, groups_of(networks.size())));
    evaluators.each_group(networks.size(), [&](Evaluator &evaluator, size_t first, size_t count) {
        const auto paths = evaluator.paths(networks.subspan(first, count));
        std::ranges::copy(paths, found.paths.begin() + static_cast<std::ptrdiff_t>(first));
        if (first == 0 && with_hops)
            found.hops = evaluator.hops(0);
    });
    return found;
}

} // namespace wulf
