// Thousands of random programs against a plain reading of the same rules; on every kind of vectors and any
// number of threads the same numbers to the last bit.
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "plain.hpp"
#include "planned.hpp"
#include "random_program.hpp"
#include "replay/curve.hpp"
#include "replay/scenarios.hpp"
#include "replay/timeline.hpp"
#include "tests/expect.h"

using namespace wulf;

namespace {

bool is_same(const Path &one, const Path &other) { return std::memcmp(&one, &other, sizeof one) == 0; }

void times_are_as_plain_reading_says(const Plan &plan, std::span<const Network> networks) {
    Evaluator evaluator(plan);
    const auto found = evaluator.evaluate(networks);
    const auto paths = evaluator.paths(networks);
    for (size_t lane = 0; lane < networks.size(); lane++) {
        Plain plain(plan, networks[lane]);
        EXPECT_NEAR(found[lane].time_ns, plain.time_ns());
        // The time is what its longest path consists of, each part times its parameter.
        EXPECT_NEAR(paths[lane].time_ns(networks[lane]), found[lane].time_ns);
        double hops = 0;
        for (const auto &hop : evaluator.hops(lane))
            hops += hop.is_latency ? 1 : 0;
        EXPECT(hops == paths[lane].links[BETWEEN_NODES].hops + paths[lane].links[WITHIN_NODE].hops);
    }
}

// All that ranks do until they end is in the cells.
void time_is_accounted_for(const Plan &plan, const Network &network) {
    Evaluator evaluator(plan);
    const auto evaluated = evaluator.evaluate({&network, 1}).front();
    const double whole = std::max(evaluated.time_ns, 1.0);
    const auto found = timeline(plan, network, {0, whole, plan.ranks, 7});
    EXPECT_NEAR(found.time_ns, evaluated.time_ns);
    for (size_t rank = 0; rank < plan.ranks; rank++) {
        double cells = 0;
        for (const auto &activity : found.rows[rank].cells)
            cells += std::accumulate(activity.begin(), activity.end(), 0.0);
        EXPECT(std::abs(cells * whole / 7 - evaluated.rank_ns[rank]) <= 1e-6 * whole);
    }
}

void all_kernels_agree(const Plan &plan, std::span<const Network> networks) {
    Evaluator first(plan, kernels().front());
    const auto times = first.evaluate(networks);
    const auto paths = first.paths(networks);
    for (const auto &kind : kernels()) {
        Evaluator evaluator(plan, kind);
        const auto found = evaluator.evaluate(networks);
        for (size_t lane = 0; lane < networks.size(); lane++)
            EXPECT(found[lane].rank_ns == times[lane].rank_ns);
        const auto again = evaluator.paths(networks);
        EXPECT(std::equal(again.begin(), again.end(), paths.begin(), is_same));
        // How the time grows with the latency is carried along, and is what the longest path says.
        std::vector<double> latencies_ns;
        for (const auto &network : networks)
            latencies_ns.push_back(network.links[BETWEEN_NODES].latency_ns);
        evaluator.take(networks);
        const auto slopes = evaluator.slopes_at(latencies_ns);
        for (size_t lane = 0; lane < networks.size(); lane++) {
            EXPECT(slopes[lane].time_ns == std::ranges::max(times[lane].rank_ns));
            EXPECT(slopes[lane].hops == paths[lane].links[BETWEEN_NODES].hops);
        }
    }
}

void threads_agree(const Plan &plan, std::span<const Network> networks) {
    std::vector<Network> many;
    for (size_t one = 0; one < 3 * LANES + 1; one++) {
        many.push_back(networks[one % networks.size()]);
        many.back().compute += 0.01 * static_cast<double>(one);
    }
    const auto alone = evaluate_all(plan, many, 1, true), together = evaluate_all(plan, many, 3, true);
    EXPECT(std::equal(alone.paths.begin(), alone.paths.end(), together.paths.begin(), is_same));
    EXPECT(alone.hops.size() == together.hops.size());
}

// Whatever is half way between two networks takes no longer than what is half way between their times, at the
// same limits of eager messages.
void times_are_convex_in_every_parameter(const Plan &plan, const Network &network) {
    const auto linear = [&](auto change) {
        std::array<Network, 3> at{network, network, network};
        for (size_t place = 0; place < at.size(); place++)
            change(at[place], static_cast<double>(place));
        Evaluator evaluator(plan);
        const auto times = evaluator.evaluate(at);
        EXPECT(times[1].time_ns <= (times[0].time_ns + times[2].time_ns) / 2 * (1 + 1e-12));
    };
    linear([](Network &of, double by) { of.links[BETWEEN_NODES].latency_ns *= 1 + by; });
    linear([](Network &of, double by) { of.links[WITHIN_NODE].latency_ns *= 1 + by; });
    linear([](Network &of, double by) { of.compute *= 0.5 + by; });
    linear([](Network &of, double by) { of.links[BETWEEN_NODES].depth_ns *= 0.5 + by; });
    linear([](Network &of, double by) { of.reduce_per_byte_ns += by; });
    for (const auto time : {&Link::answering_ns, &Link::answered_ns})
        linear([&](Network &of, double by) { of.links[BETWEEN_NODES].*time += 1000 * by; });
    linear([](Network &of, double by) { of.making_ns += 1000 * by; });
    linear([](Network &of, double by) { of.connecting_ns += 1000 * by; });
    for (const auto pieces : {&Link::send, &Link::receive, &Link::busy, &Link::after, &Link::wire})
        for (const auto locality : {BETWEEN_NODES, WITHIN_NODE})
            linear([&](Network &of, double by) {
                Pieces changed;
                changed.add({0, 100 + 700 * by, 0.1 + by});
                of.links[locality].*pieces = changed;
            });
}

void the_curve_is_exact_where_it_was_not_asked(const Plan &plan, Network network) {
    const auto curve = latency_curve(plan, network, 0, 50000, 2);
    for (const double latency : {0.0, 123.0, 5000.0, 20000.0, 49999.0}) {
        network.links[BETWEEN_NODES].latency_ns = latency;
        EXPECT_NEAR(at(curve, latency), time_of(plan, network));
    }
}

void a_random_program(uint64_t seed) {
    Random random(seed);
    const auto ranks = static_cast<uint32_t>(2 + below(random, 6));
    const MadeTrace made = random_program(random, ranks);
    std::vector<uint32_t> nodes;
    for (uint32_t rank = 0; rank < ranks; rank++)
        nodes.push_back(below(random, 2) == 0 ? rank : rank / 2);
    // Messages that are eager on all networks have fewer steps.
    std::vector<Network> networks;
    uint64_t surely_eager = UINT64_MAX;
    for (size_t lane = 0; lane < LANES; lane++) {
        networks.push_back(random_network(random));
        for (const auto &link : networks.back().links)
            surely_eager = std::min(surely_eager, link.eager_bytes);
    }
    const Plan plan = planned(made, 0, nodes);
    EXPECT(plan.unfinished.empty());
    times_are_as_plain_reading_says(plan, networks);
    const Plan lean = planned(made, surely_eager, nodes);
    EXPECT(lean.steps.size() <= plan.steps.size());
    times_are_as_plain_reading_says(lean, networks);
    std::vector<Network> eager = networks;
    for (auto &network : eager)
        for (auto &link : network.links)
            link.eager_bytes += 4000;
    times_are_as_plain_reading_says(planned(made, 4000, nodes), eager);
    time_is_accounted_for(plan, networks[0]);
    time_is_accounted_for(lean, networks[0]);
    all_kernels_agree(plan, networks);
    if (seed % 16 == 0)
        threads_agree(plan, networks);
    times_are_convex_in_every_parameter(plan, networks[0]);
    the_curve_is_exact_where_it_was_not_asked(plan, networks[0]);
}

} // namespace

// Arguments: the first seed, and the one behind the last.
int main(int count, char **words) {
    const uint64_t first = count > 1 ? std::strtoull(words[1], nullptr, 10) : 0;
    const uint64_t end = count > 2 ? std::strtoull(words[2], nullptr, 10) : 10000;
    for (uint64_t seed = first; seed < end && expect_failures < 5; seed++) {
        a_random_program(seed);
        if (expect_failures > 0)
            fprintf(stderr, "  … by the program of seed %d\n", static_cast<int>(seed));
    }
    return EXPECT_STATUS();
}
