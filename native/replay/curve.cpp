#include "replay/curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wulf {

namespace {

// The time at a latency, and how it grows there.
struct Point {
    double latency_ns, time_ns, hops;
};

struct Gap {
    Point low, high;
};

double line_at(const Point &point, double latency_ns) {
    return point.time_ns + point.hops * (latency_ns - point.latency_ns);
}

// Where the lines of two points meet.
double meeting(const Gap &gap) {
    const double place = gap.low.latency_ns + (gap.high.time_ns - gap.low.time_ns -
                                               gap.high.hops * (gap.high.latency_ns - gap.low.latency_ns)) /
                                                  (gap.low.hops - gap.high.hops);
    return std::clamp(place, gap.low.latency_ns, gap.high.latency_ns);
}

bool is_one_line(const Gap &gap) {
    const double there = line_at(gap.low, gap.high.latency_ns);
    return gap.low.hops == gap.high.hops || std::abs(gap.high.time_ns - there) <= 1e-12 * std::abs(there);
}

} // namespace

std::vector<Line> latency_curve(Evaluator &evaluator, const Network &network, double low_ns, double high_ns,
                                size_t most) {
    const auto points = [&](const std::vector<double> &latencies) {
        std::vector<Network> networks(latencies.size(), network);
        for (size_t place = 0; place < latencies.size(); place++)
            networks[place].links[BETWEEN_NODES].latency_ns = latencies[place];
        const auto paths = evaluator.paths(networks);
        std::vector<Point> found;
        for (size_t place = 0; place < paths.size(); place++)
            found.push_back({latencies[place], paths[place].time_ns(networks[place]),
                             paths[place].links[BETWEEN_NODES].hops});
        return found;
    };
    const auto ends = points({low_ns, high_ns});
    std::vector<Line> lines{{ends[0].latency_ns, ends[0].time_ns, ends[0].hops}};
    std::vector<Gap> gaps{{ends[0], ends[1]}};
    // Two lines of a convex curve meet on it, or another line is above the place where they do.
    while (!gaps.empty()) {
        std::vector<Gap> open;
        std::vector<double> wanted;
        for (; !gaps.empty() && open.size() < LANES; gaps.pop_back())
            if (!is_one_line(gaps.back())) {
                open.push_back(gaps.back());
                wanted.push_back(meeting(gaps.back()));
            }
        if (open.empty())
            continue;
        const auto found = points(wanted);
        for (size_t place = 0; place < found.size(); place++) {
            const auto &gap = open[place];
            const Point &here = found[place];
            const double below = line_at(gap.low, here.latency_ns);
            if (here.time_ns <= below + 1e-9 * std::abs(below)) {
                lines.push_back({here.latency_ns, here.time_ns, gap.high.hops});
                if (lines.size() > most)
                    throw InputError("the time changes its slope more than " + std::to_string(most) +
                                     " times");
            } else {
                gaps.push_back({gap.low, here});
                gaps.push_back({here, gap.high});
            }
        }
    }
    // It is convex, so that slopes ascend; several lines may begin at one place.
    std::sort(lines.begin(), lines.end(),
              [](const Line &one, const Line &other) { return one.hops < other.hops; });
    return lines;
}

double at(const std::vector<Line> &curve, double latency_ns) {
    auto line = std::upper_bound(curve.begin(), curve.end(), latency_ns,
                                 [](double value, const Line &one) { return value < one.latency_ns; });
    if (line != curve.begin())
        --line;
    return line->time_ns + line->hops * (latency_ns - line->latency_ns);
}

double tolerated(const std::vector<Line> &curve, double from_ns, double factor) {
    const double wanted = factor * at(curve, from_ns);
    for (auto line = curve.rbegin(); line != curve.rend(); ++line)
        if (line->time_ns <= wanted && line->hops > 0)
            return line->latency_ns + (wanted - line->time_ns) / line->hops;
    return std::numeric_limits<double>::infinity();
}

} // namespace wulf
