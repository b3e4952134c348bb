#include "replay/curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

// Where to begin: both ends, and what is between them in equal ratios.
std::vector<double> first_latencies(double low_ns, double high_ns) {
    constexpr size_t COUNT = 2 * LANES;
    const double from = std::max(low_ns, high_ns / 1024);
    std::vector<double> found{low_ns};
    for (size_t place = 1; place + 1 < COUNT; place++)
        found.push_back(from * std::pow(high_ns / from, static_cast<double>(place) / (COUNT - 1)));
    found.push_back(high_ns);
    return found;
}

class CurveFinder {
  public:
    CurveFinder(const Plan &plan, const Network &network, size_t threads, size_t most)
        : evaluators_(plan, threads), most_(most) {
        for (auto &evaluator : evaluators_.all())
            evaluator.take(std::vector<Network>(LANES, network));
    }

    std::vector<Line> find(double low_ns, double high_ns) {
        const auto first = points(first_latencies(low_ns, high_ns));
        lines_ = {{first[0].latency_ns, first[0].time_ns, first[0].hops}};
        for (size_t place = 0; place + 1 < first.size(); place++)
            add(first[place], first[place + 1]);
        while (!gaps_.empty())
            look_into_gaps();
        // It is convex, so that slopes ascend; several lines may begin at one place.
        std::sort(lines_.begin(), lines_.end(),
                  [](const Line &one, const Line &other) { return one.hops < other.hops; });
        return std::move(lines_);
    }

  private:
    std::vector<Point> points(std::span<const double> latencies) {
        std::vector<Point> found(latencies.size());
        evaluators_.each_group(latencies.size(), [&](Evaluator &evaluator, size_t first, size_t count) {
            const auto here = latencies.subspan(first, count);
            const auto slopes = evaluator.slopes_at(here);
            for (size_t lane = 0; lane < count; lane++)
                found[first + lane] = {here[lane], slopes[lane].time_ns, slopes[lane].hops};
        });
        return found;
    }

    void add(const Point &low, const Point &high) {
        const Gap gap{low, high};
        if (is_one_line(gap))
            return;
        // Latencies are counted: there is no line between two whose slopes are neighbours.
        if (high.hops - low.hops <= 1)
            add_line(gap);
        else
            gaps_.push_back(gap);
    }

    // The line of the higher point, which begins where that of the lower one ends.
    void add_line(const Gap &gap) {
        const double place = meeting(gap);
        lines_.push_back({place, line_at(gap.low, place), gap.high.hops});
        if (lines_.size() > most_)
            throw InputError("the time changes its slope more than " + std::to_string(most_) + " times");
    }

    // Two lines of a convex curve meet on it, or another line is above the place where they do. All gaps are
    // looked into at once, so that the number of threads changes nothing of what is found.
    void look_into_gaps() {
        const auto open = std::exchange(gaps_, {});
        std::vector<double> wanted;
        for (const auto &gap : open)
            wanted.push_back(meeting(gap));
        const auto found = points(wanted);
        for (size_t place = 0; place < open.size(); place++) {
            const auto &[low, high] = open[place];
            const Point &here = found[place];
            const double below = line_at(low, here.latency_ns);
            if (here.time_ns <= below + 1e-9 * std::abs(below)) {
                add_line(open[place]);
                continue;
            }
            add(low, here);
            add(here, high);
        }
    }

    Evaluators evaluators_;
    const size_t most_;
    std::vector<Gap> gaps_; // between neighbours, whose lines are not the same
    std::vector<Line> lines_;
};

} // namespace

std::vector<Line> latency_curve(const Plan &plan, const Network &network, double low_ns, double high_ns,
                                size_t threads, size_t most) {
    return CurveFinder(plan, network, threads, most).find(low_ns, high_ns);
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
