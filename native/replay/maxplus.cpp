#include "replay/maxplus.hpp"

#include <algorithm>
#include <cassert>

// One binary for all machines of an architecture: the widest instructions that the machine has.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_MACHINE
#endif

namespace wulf {

double Path::time_ns(const Network &network) const {
    double sum = compute_ns * network.compute + reduce_bytes * network.reduce_per_byte_ns;
    for (size_t locality = 0; locality < LOCALITIES; locality++) {
        const auto &link = links[locality];
        sum += link.hops * network.links[locality].latency_ns + link.send_ns + link.receive_ns + link.wire_ns;
    }
    return sum;
}

Evaluator::Evaluator(const Plan &plan) : plan_(plan), last_(plan.ranks, NO_STEP) {
    for (uint32_t number = 0; number < plan.steps.size(); number++)
        if (plan.steps[number].kind() != TRANSFER)
            last_[plan.steps[number].rank()] = number;
}

void Evaluator::prepare(std::span<const Network> networks) {
    assert(!networks.empty() && networks.size() <= LANES);
    networks_.assign(networks.begin(), networks.end());
    costs_.resize(plan_.sizes.size());
    // Lanes that are not asked for repeat the last network.
    const auto of = [&](size_t lane) -> const Network & {
        return networks_[std::min(lane, networks_.size() - 1)];
    };
    for (size_t lane = 0; lane < LANES; lane++) {
        compute_[lane] = of(lane).compute;
        reduce_[lane] = of(lane).reduce_per_byte_ns;
        for (size_t number = 0; number < costs_.size(); number++) {
            const auto &size = plan_.sizes[number];
            const auto &link = of(lane).links[size.locality];
            auto &costs = costs_[number];
            costs.send[lane] = link.send.at(size.bytes);
            costs.receive[lane] = link.receive.at(size.bytes);
            costs.wire[lane] = link.wire.at(size.bytes);
            costs.latency[lane] = link.latency_ns;
            const bool agreed = size.mode == Mode::SYNCHRONOUS ||
                                (size.mode == Mode::STANDARD && size.bytes > link.eager_bytes);
            costs.agreed[lane] = agreed ? -1 : 0;
            costs.is_within = size.locality == WITHIN_NODE;
        }
    }
    clocks_.assign(plan_.ranks, RankClock{});
    messages_.resize(plan_.slots);
}

template <bool KEEPS_CHOICES> inline void Evaluator::run_steps() {
    // Inlined always: called, they would get their arguments as another machine passes them.
    const auto later = [](Lanes one, Lanes other) __attribute__((always_inline)) {
        return other > one ? other : one;
    };
    const auto bits = [](Mask mask) __attribute__((always_inline)) {
        uint16_t found = 0;
        for (size_t lane = 0; lane < LANES; lane++)
            found |= static_cast<uint16_t>((mask[lane] & 1) << lane);
        return found;
    };
    const Step *const steps = plan_.steps.data();
    const size_t count = plan_.steps.size();
    for (size_t number = 0; number < count; number++) {
        const Step step = steps[number];
        RankClock &rank = clocks_[step.rank()];
        const Lanes clock = rank.clock + static_cast<double>(step.compute_ns) * compute_;
        uint16_t choices = 0;
        switch (step.kind()) {
        case COMPUTE:
            rank.clock = clock;
            break;
        case REDUCE:
            rank.clock = clock + static_cast<double>(step.slot) * reduce_;
            break;
        case SEND: {
            const Costs &costs = costs_[step.size];
            const Lanes ready = clock + costs.send;
            rank.clock = ready;
            Lanes sent = ready + costs.wire;
            if (!costs.is_within) {
                if constexpr (KEEPS_CHOICES)
                    choices = bits(rank.out > ready);
                sent = later(ready, rank.out) + costs.wire;
                rank.out = costs.agreed ? rank.out : sent;
            }
            messages_[step.slot].a = costs.agreed ? ready : sent + costs.latency;
            break;
        }
        case POST:
            rank.clock = clock;
            messages_[step.slot].b = clock;
            break;
        case TRANSFER: {
            const Costs &costs = costs_[step.size];
            Known &known = messages_[step.slot];
            const Lanes asked = known.a + costs.latency;
            Lanes start = later(asked, known.b) + costs.latency;
            if constexpr (KEEPS_CHOICES)
                choices = bits(known.b > asked);
            if (!costs.is_within) {
                if constexpr (KEEPS_CHOICES)
                    choices |= static_cast<uint16_t>(bits(rank.out > start) << LANES);
                start = later(start, rank.out);
            }
            const Lanes gone = start + costs.wire;
            if (!costs.is_within)
                rank.out = costs.agreed ? gone : rank.out;
            known.a = costs.agreed ? gone + costs.latency : known.a;
            known.b = gone;
            break;
        }
        case SENT: {
            const Costs &costs = costs_[step.size];
            const Lanes gone = costs.agreed ? messages_[step.slot].b : clock;
            if constexpr (KEEPS_CHOICES)
                choices = static_cast<uint16_t>(bits(gone > clock) << LANES);
            rank.clock = later(clock, gone);
            break;
        }
        case RECEIVE: {
            const Costs &costs = costs_[step.size];
            Lanes come = messages_[step.slot].a;
            if (!costs.is_within) {
                const Lanes behind = rank.in + costs.wire;
                if constexpr (KEEPS_CHOICES)
                    choices = bits(behind > come);
                come = later(come, behind);
                rank.in = come;
            }
            if constexpr (KEEPS_CHOICES)
                choices |= static_cast<uint16_t>(bits(come > clock) << LANES);
            rank.clock = later(clock, come) + costs.receive;
            break;
        }
        }
        if constexpr (KEEPS_CHOICES)
            choices_[number] = choices;
    }
}

FOR_EVERY_MACHINE void Evaluator::run_plain() { run_steps<false>(); }

FOR_EVERY_MACHINE void Evaluator::run_with_choices() { run_steps<true>(); }

std::vector<Evaluation> Evaluator::results() const {
    std::vector<Evaluation> found(networks_.size());
    for (size_t lane = 0; lane < found.size(); lane++) {
        for (const auto &rank : clocks_)
            found[lane].rank_ns.push_back(rank.clock[lane]);
        found[lane].time_ns = *std::max_element(found[lane].rank_ns.begin(), found[lane].rank_ns.end());
    }
    return found;
}

std::vector<Evaluation> Evaluator::evaluate(std::span<const Network> networks) {
    prepare(networks);
    run_plain();
    return results();
}

// Visit what is on the longest path, from the end: visit(step, made, later), where `later` says that the
// interface, not the message, was waited for.
template <typename Visit> void Evaluator::walk(size_t lane, Visit visit) const {
    const auto end =
        std::max_element(clocks_.begin(), clocks_.end(), [lane](const auto &one, const auto &other) {
            return one.clock[lane] < other.clock[lane];
        });
    uint32_t number = last_[static_cast<size_t>(end - clocks_.begin())];
    Made made = Made::CLOCK;
    const auto go = [&](uint32_t to, Made what) {
        number = to;
        made = what;
    };
    while (number != NO_STEP) {
        const Step &step = plan_.steps[number];
        const Origins &origins = plan_.origins[number];
        const bool first = choices_[number] >> lane & 1, second = choices_[number] >> (lane + LANES) & 1;
        const StepKind kind = step.kind();
        const bool has_size = kind != COMPUTE && kind != REDUCE && kind != POST;
        const bool agreed = has_size && costs_[step.size].agreed[lane] != 0;
        const bool is_within = has_size && costs_[step.size].is_within;
        if (kind == COMPUTE || kind == REDUCE || kind == POST || (kind == SEND && made == Made::CLOCK)) {
            visit(number, Made::CLOCK);
            go(origins.before, Made::CLOCK);
        } else if (kind == SEND && made == Made::OUT) {
            if (agreed) {
                go(origins.interface, Made::OUT);
            } else {
                visit(number, Made::OUT);
                first ? go(origins.interface, Made::OUT) : go(number, Made::CLOCK);
            }
        } else if (kind == SEND) {
            if (agreed) {
                go(number, Made::CLOCK);
            } else {
                visit(number, Made::ARRIVAL);
                if (is_within)
                    visit(number, Made::OUT);
                go(number, is_within ? Made::CLOCK : Made::OUT);
            }
        } else if (kind == TRANSFER && !agreed) {
            made == Made::OUT ? go(origins.interface, Made::OUT) : go(origins.other, Made::ARRIVAL);
        } else if (kind == TRANSFER && made == Made::ARRIVAL) {
            visit(number, Made::ARRIVAL);
            go(number, Made::GONE);
        } else if (kind == TRANSFER) {
            visit(number, Made::OUT);
            if (!is_within && second) {
                go(origins.interface, Made::OUT);
            } else {
                visit(number, Made::READY); // the answer's way
                if (first) {
                    go(origins.before, Made::CLOCK);
                } else {
                    visit(number, Made::READY); // and the question's
                    go(origins.other, Made::ARRIVAL);
                }
            }
        } else if (kind == SENT) {
            if (agreed && second) {
                go(origins.other, Made::GONE);
            } else {
                visit(number, Made::CLOCK);
                go(origins.before, Made::CLOCK);
            }
        } else if (made == Made::CLOCK && !second) { // RECEIVE
            visit(number, Made::CLOCK);
            visit(number, Made::GONE);
            go(origins.before, Made::CLOCK);
        } else {
            if (made == Made::CLOCK)
                visit(number, Made::GONE);
            if (!is_within && first) {
                visit(number, Made::OUT);
                go(origins.interface, Made::IN);
            } else {
                go(origins.other, Made::ARRIVAL);
            }
        }
    }
}

std::vector<Path> Evaluator::paths(std::span<const Network> networks) {
    prepare(networks);
    choices_.resize(plan_.steps.size());
    run_with_choices();
    std::vector<Path> found(networks.size());
    for (size_t lane = 0; lane < found.size(); lane++) {
        Path &path = found[lane];
        walk(lane, [&](uint32_t number, Made made) {
            const Step &step = plan_.steps[number];
            const StepKind kind = step.kind();
            if (made == Made::CLOCK) {
                path.compute_ns += step.compute_ns;
                if (kind == REDUCE)
                    path.reduce_bytes += step.slot;
            }
            if (kind == COMPUTE || kind == REDUCE || kind == POST || (kind == SENT))
                return;
            const Size &size = plan_.sizes[step.size];
            auto &link = path.links[size.locality];
            const Costs &costs = costs_[step.size];
            if (made == Made::CLOCK && kind == SEND)
                link.send_ns += costs.send[lane];
            else if (made == Made::GONE && kind == RECEIVE)
                link.receive_ns += costs.receive[lane];
            else if (made == Made::OUT) {
                link.wire_ns += costs.wire[lane];
                link.wire_bytes += static_cast<double>(size.bytes);
            } else if (made == Made::ARRIVAL || made == Made::READY)
                link.hops += 1;
        });
    }
    return found;
}

std::vector<Hop> Evaluator::hops(size_t lane) const {
    std::vector<Hop> found;
    walk(lane, [&](uint32_t number, Made made) {
        found.push_back({number, made == Made::ARRIVAL || made == Made::READY});
    });
    return found;
}

} // namespace wulf
