#include "replay/measure.hpp"

#include <chrono>

#include "replay/curve.hpp"
#include "replay/scenarios.hpp"

namespace wulf {

namespace {

using Clock = std::chrono::steady_clock;

// What has passed since `begin`, which is now.
double lap(Clock::time_point &begin) {
    const auto now = Clock::now();
    return std::chrono::duration<double, std::nano>(now - std::exchange(begin, now)).count();
}

} // namespace

Measured measure(const std::string &path, const PlanOptions &options, std::span<const Network> networks,
                 const std::optional<std::pair<double, double>> &curve, size_t threads) {
    StageTimes times;
    auto begin = Clock::now();
    const MappedFile file(path);
    Trace trace(file.bytes(), path);
    times.load_ns = lap(begin);
    Plan made = plan(trace, options);
    times.plan_ns = lap(begin);
    Evaluator evaluator(made);
    for (size_t first = 0; first < networks.size(); first += LANES)
        evaluator.evaluate(networks.subspan(first, std::min(LANES, networks.size() - first)));
    times.evaluate_ns = lap(begin);
    evaluate_all(made, networks, threads, false);
    times.paths_ns = lap(begin);
    if (curve) {
        times.lines = latency_curve(made, networks.front(), curve->first, curve->second, threads).size();
        times.curve_ns = lap(begin);
    }
    return {std::move(made), times};
}

} // namespace wulf
