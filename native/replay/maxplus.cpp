#include "replay/maxplus.hpp"

#include <algorithm>
#include <cassert>

#include "replay/walk.hpp"

namespace wulf {

double Path::time_ns(const Network &network) const {
    double sum = compute_ns * network.compute + reduce_bytes * network.reduce_per_byte_ns;
    for (size_t locality = 0; locality < LOCALITIES; locality++) {
        const auto &link = links[locality];
        sum += link.hops * network.links[locality].latency_ns + link.send_ns + link.receive_ns + link.wire_ns;
    }
    return sum;
}

Evaluator::Evaluator(const Plan &plan, const KernelKind &kind) : plan_(plan), kind_(kind) {
    assert(LANES <= 8 * sizeof(Few));
    clocks_.resize(plan.ranks);
    arrived_.resize(plan.slots);
    ready_.resize(plan.slots);
    noted_sizes_.resize(plan.slots);
    costs_.resize(plan.sizes.size());
    agreed_.resize(plan.sizes.size());
    agreed_bits_.resize(plan.sizes.size());
}

void Evaluator::take(std::span<const Network> networks) {
    assert(!networks.empty() && networks.size() <= LANES);
    networks_.assign(networks.begin(), networks.end());
    std::ranges::fill(agreed_bits_, Few{0});
    has_bursts_ = std::ranges::any_of(
        networks, [](const Network &network) { return network.links[BETWEEN_NODES].has_bursts(); });
    // Lanes that are not asked for repeat the last network.
    for (size_t lane = 0; lane < LANES; lane++)
        take(lane, networks_[std::min(lane, networks_.size() - 1)]);
}

void Evaluator::take(size_t lane, const Network &network) {
    compute_.of[lane] = network.compute;
    reduce_.of[lane] = network.reduce_per_byte_ns;
    for (size_t locality = 0; locality < LOCALITIES; locality++)
        latency_[locality].of[lane] = network.links[locality].latency_ns;
    for (size_t number = 0; number < costs_.size(); number++) {
        const auto &size = plan_.sizes[number];
        const MessageCosts costs = costs_of(network, size);
        costs_[number].send.of[lane] = costs.send;
        costs_[number].receive.of[lane] = costs.receive;
        costs_[number].busy.of[lane] = costs.busy;
        costs_[number].wire.of[lane] = costs.wire;
        costs_[number].after.of[lane] = costs.after;
        costs_[number].first.of[lane] = costs.first;
        costs_[number].answering.of[lane] = costs.answering;
        costs_[number].answered.of[lane] = network.links[size.locality].answered_ns;
        costs_[number].behind.of[lane] = costs.wire - network.links[size.locality].depth_ns;
        agreed_[number].of[lane] = costs.agreed ? -1 : 0;
        agreed_bits_[number] |= static_cast<Few>(costs.agreed ? 1U << lane : 0);
    }
}

void Evaluator::run(Keeps keeps) {
    std::ranges::fill(clocks_, RankClock{});
    std::ranges::fill(clock_hops_, RankClock{});
    const Kernel kernel{.steps = plan_.steps.data(),
                        .runs = {plan_.runs.begin(), plan_.runs.end()},
                        .compute = compute_,
                        .reduce = reduce_,
                        .latency = {latency_[BETWEEN_NODES], latency_[WITHIN_NODE]},
                        .costs = costs_.data(),
                        .agreed = agreed_.data(),
                        .clocks = clocks_.data(),
                        .clock_hops = clock_hops_.data(),
                        .arrived = {arrived_.data(), arrived_hops_.data()},
                        .ready = {ready_.data(), ready_hops_.data()},
                        .sizes = noted_sizes_.data(),
                        .choices = choices_.data(),
                        .gone_behind = gone_behind_.data()};
    (has_bursts_ ? kind_.run_bursts : kind_.run)[static_cast<size_t>(keeps)](kernel);
}

void Evaluator::keep_choices() {
    choices_.resize(plan_.steps.size());
    if (has_bursts_)
        gone_behind_.resize(plan_.steps.size());
    run(Keeps::CHOICES);
}

std::vector<Evaluation> Evaluator::evaluate(std::span<const Network> networks) {
    take(networks);
    run(Keeps::NOTHING);
    std::vector<Evaluation> found(networks_.size());
    for (size_t lane = 0; lane < found.size(); lane++) {
        for (const auto &rank : clocks_)
            found[lane].rank_ns.push_back(rank.clock.of[lane]);
        found[lane].time_ns = *std::ranges::max_element(found[lane].rank_ns);
    }
    return found;
}

uint32_t Evaluator::last_rank(size_t lane) const {
    const auto last =
        std::ranges::max_element(clocks_, {}, [lane](const RankClock &rank) { return rank.clock.of[lane]; });
    return static_cast<uint32_t>(last - clocks_.begin());
}

std::vector<Path> Evaluator::paths(std::span<const Network> networks) {
    take(networks);
    keep_choices();
    std::vector<Path> found(networks.size());
    const auto add = [&](size_t lane, Part part, uint32_t number, uint32_t, uint32_t size) {
        Path &path = found[lane];
        if (part == Part::COMPUTE) {
            const Step &step = plan_.steps[number];
            const auto amount = static_cast<double>(step.amount());
            (step.kind() == COMPUTE ? path.compute_ns : path.reduce_bytes) += amount;
            return;
        }
        auto &link = path.links[plan_.sizes[size].locality];
        const SizeCosts &costs = costs_[size];
        if (part == Part::SENDING)
            link.send_ns += costs.send.of[lane];
        else if (part == Part::AFTER)
            link.send_ns += costs.after.of[lane];
        else if (part == Part::RECEIVING)
            link.receive_ns += costs.receive.of[lane];
        else if (part == Part::BUSY)
            link.receive_ns += costs.busy.of[lane];
        else if (part == Part::ANSWERING)
            link.receive_ns += costs.answering.of[lane];
        else if (part == Part::ANSWERED)
            link.receive_ns += costs.answered.of[lane];
        else if (part == Part::LATENCY)
            link.hops += 1;
        else {
            const auto &taken = part == Part::WIRE    ? costs.wire
                                : part == Part::FIRST ? costs.first
                                                      : costs.behind;
            link.wire_ns += taken.of[lane];
            link.wire_bytes += static_cast<double>(plan_.sizes[size].bytes);
        }
    };
    Walk walk(plan_, agreed_bits_, {choices_, has_bursts_ ? &gone_behind_ : nullptr}, add);
    for (size_t lane = 0; lane < found.size(); lane++)
        walk.want(lane, last_rank(lane));
    walk.run();
    return found;
}

std::vector<Slope> Evaluator::slopes_at(std::span<const double> latencies_ns) {
    assert(latencies_ns.size() <= networks_.size());
    for (size_t lane = 0; lane < latencies_ns.size(); lane++)
        latency_[BETWEEN_NODES].of[lane] = latencies_ns[lane];
    clock_hops_.resize(plan_.ranks);
    arrived_hops_.resize(plan_.slots);
    ready_hops_.resize(plan_.slots);
    run(Keeps::HOPS);
    std::vector<Slope> found(latencies_ns.size());
    for (size_t lane = 0; lane < found.size(); lane++) {
        const uint32_t last = last_rank(lane);
        found[lane] = {clocks_[last].clock.of[lane], clock_hops_[last].clock.of[lane]};
    }
    return found;
}

std::vector<Hop> Evaluator::hops(size_t lane) const {
    std::vector<Hop> found;
    Walk walk(plan_, agreed_bits_, {choices_, has_bursts_ ? &gone_behind_ : nullptr},
              [&](size_t, Part part, uint32_t number, uint32_t rank, uint32_t size) {
                  found.push_back({number, rank, size, part == Part::LATENCY});
              });
    walk.want(lane, last_rank(lane));
    walk.run();
    return found;
}

} // namespace wulf
