// The same rules as Evaluator's, as plainly as they can be written: one network, everything remembered,
// backwards.
#pragma once

#include <algorithm>
#include <map>

#include "replay/plan.hpp"

namespace wulf {

class Plain {
  public:
    Plain(const Plan &plan, const Network &network) : plan_(plan), network_(network) {}

    double time_ns() {
        double latest = 0;
        for (uint32_t number = 0; number < plan_.steps.size(); number++)
            if (plan_.steps[number].kind() != TRANSFER)
                latest = std::max(latest, clock(number));
        return latest;
    }

  private:
    const Size &size(uint32_t number) const { return plan_.sizes[plan_.steps[number].size]; }
    const Link &link(uint32_t number) const { return network_.links[size(number).locality]; }
    bool within(uint32_t number) const { return size(number).locality == WITHIN_NODE; }
    bool agreed(uint32_t number) const {
        return size(number).mode == Mode::SYNCHRONOUS ||
               (size(number).mode == Mode::STANDARD && size(number).bytes > link(number).eager_bytes);
    }
    double wire(uint32_t number) const { return link(number).wire.at(size(number).bytes); }

    template <typename Compute>
    double once(std::map<uint32_t, double> &known, uint32_t number, Compute compute) {
        if (number == NO_STEP)
            return 0;
        const auto found = known.find(number);
        if (found != known.end())
            return found->second;
        const double value = compute();
        known[number] = value;
        return value;
    }

    double clock(uint32_t number) {
        return once(clocks_, number, [&] {
            const Step &step = plan_.steps[number];
            const double mine = clock(plan_.origins[number].before) + step.compute_ns * network_.compute;
            switch (step.kind()) {
            case REDUCE:
                return mine + step.slot * network_.reduce_per_byte_ns;
            case SEND:
                return mine + link(number).send.at(size(number).bytes);
            case SENT:
                return agreed(number) ? std::max(mine, gone(plan_.origins[number].other)) : mine;
            case RECEIVE:
                return std::max(mine, in(number)) + link(number).receive.at(size(number).bytes);
            default:
                return mine;
            }
        });
    }

    // Until when the sender's interface is taken, after that step.
    double out(uint32_t number) {
        return once(outs_, number, [&] {
            const bool is_send = plan_.steps[number].kind() == SEND;
            const double before = out(plan_.origins[number].interface);
            if (agreed(number) == is_send)
                return before;
            return std::max(before, is_send ? clock(number) : start(number)) + wire(number);
        });
    }

    double start(uint32_t transfer) {
        const Origins &origins = plan_.origins[transfer];
        const double latency = link(transfer).latency_ns;
        return std::max(clock(origins.other) + latency, clock(origins.before)) + latency;
    }

    double gone(uint32_t transfer) {
        return within(transfer) ? start(transfer) + wire(transfer) : out(transfer);
    }

    double arrival(uint32_t number) {
        if (plan_.steps[number].kind() == TRANSFER)
            return agreed(number) ? gone(number) + link(number).latency_ns
                                  : arrival(plan_.origins[number].other);
        return (within(number) ? clock(number) + wire(number) : out(number)) + link(number).latency_ns;
    }

    double in(uint32_t number) {
        return once(ins_, number, [&] {
            const double come = arrival(plan_.origins[number].other);
            if (within(number))
                return come;
            return std::max(come, in(plan_.origins[number].interface) + wire(number));
        });
    }

    const Plan &plan_;
    const Network &network_;
    std::map<uint32_t, double> clocks_, outs_, ins_;
};

} // namespace wulf
