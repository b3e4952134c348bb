// The same rules as Evaluator's, as plainly as they can be written: one network, everything remembered,
// backwards.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "replay/plan.hpp"

namespace wulf {

constexpr uint32_t NO_STEP = UINT32_MAX;

// On which other steps one depends. NO_STEP: on none.
struct Origins {
    uint32_t before = NO_STEP; // the rank's last step; of TRANSFER: the POST
    // SENT, RECEIVE: the TRANSFER, or the SEND where there is none; TRANSFER: the SEND.
    uint32_t other = NO_STEP;
    uint32_t interface = NO_STEP; // the last step that took the network interface before
    uint32_t size = 0;            // which of Plan::sizes
};

// Of each step.
inline std::vector<Origins> origins_of(const Plan &plan) {
    struct OfRank {
        uint32_t last = NO_STEP, out = NO_STEP, in = NO_STEP;
    };
    struct OfSlot {
        uint32_t send = NO_STEP, post = NO_STEP, transfer = NO_STEP;
    };
    std::vector<OfRank> ranks(plan.ranks);
    std::vector<OfSlot> slots(plan.slots);
    std::vector<Origins> all;
    plan.each([&](uint32_t number, uint32_t rank, const Step &step) {
        auto &of = ranks[rank];
        Origins origins{.before = of.last};
        const StepKind kind = step.kind();
        if (kind == COMPUTE || kind == REDUCE) {
            of.last = number;
            all.push_back(origins);
            return;
        }
        auto &slot = slots[step.slot()];
        if (kind == ANSWER) {
            origins = {slot.post, slot.send, NO_STEP, step.size()};
            slot.transfer = number;
            all.push_back(origins);
            return;
        }
        if (kind == TRANSFER) {
            auto &sender = ranks[step.sender()];
            origins = {slot.post, slot.send, sender.out, all[slot.send].size};
            if (plan.sizes[origins.size].locality == BETWEEN_NODES)
                sender.out = number;
            slot.transfer = number;
            all.push_back(origins);
            return;
        }
        of.last = number;
        origins.size = step.size();
        const bool is_between = plan.sizes[step.size()].locality == BETWEEN_NODES;
        if (kind == SEND) {
            origins.interface = of.out;
            if (is_between)
                of.out = number;
            slot.send = number;
            slot.transfer = NO_STEP;
        } else if (kind == POST) {
            slot.post = number;
        } else {
            origins.other = slot.transfer != NO_STEP ? slot.transfer : slot.send;
            origins.interface = of.in;
            if (kind == RECEIVE && is_between)
                of.in = number;
        }
        all.push_back(origins);
    });
    return all;
}

class Plain {
  public:
    Plain(const Plan &plan, const Network &network)
        : plan_(plan), network_(network), origins_(origins_of(plan)) {}

    double time_ns() {
        double latest = 0;
        for (uint32_t number = 0; number < plan_.steps.size(); number++)
            if (plan_.steps[number].kind() != TRANSFER && plan_.steps[number].kind() != ANSWER)
                latest = std::max(latest, clock(number));
        return latest;
    }

  private:
    const Size &size(uint32_t number) const { return plan_.sizes[origins_[number].size]; }
    const Link &link(uint32_t number) const { return network_.links[size(number).locality]; }
    bool within(uint32_t number) const { return size(number).locality == WITHIN_NODE; }
    bool agreed(uint32_t number) const {
        return size(number).mode == Mode::SYNCHRONOUS ||
               (size(number).mode == Mode::STANDARD && size(number).bytes > link(number).eager_bytes);
    }
    double wire(uint32_t number) const { return link(number).wire.at(size(number).bytes); }

    double receive(uint32_t number) const { return link(number).receive.at(size(number).bytes); }
    double busy(uint32_t number) const { return link(number).busy.at(size(number).bytes); }

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

    double after(uint32_t number) const {
        return is_own_work(size(number).mode) ? 0 : link(number).after.at(size(number).bytes);
    }

    // When a message is ready to go.
    double left(uint32_t send) { return clock(origins_[send].before) + sending(send); }
    double sending(uint32_t send) const {
        if (size(send).mode == Mode::MAKING)
            return network_.making_ns;
        if (size(send).mode == Mode::CONNECTING)
            return network_.connecting_ns;
        return link(send).send.at(size(send).bytes);
    }

    double clock(uint32_t number) {
        return once(clocks_, number, [&] {
            const Step &step = plan_.steps[number];
            const double before = clock(origins_[number].before);
            switch (step.kind()) {
            case COMPUTE:
                return before + static_cast<double>(step.amount()) * network_.compute;
            case REDUCE:
                return before + static_cast<double>(step.amount()) * network_.reduce_per_byte_ns;
            case SEND:
                return left(number) + (agreed(number) ? 0 : after(number));
            case SENT:
                if (!step.is_mutual())
                    return std::max(before, met(origins_[number].other) + link(number).answered_ns +
                                                link(number).latency_ns);
                return agreed(number) ? std::max(before, gone(origins_[number].other) + after(number))
                                      : before;
            case RECEIVE:
                return std::max(before + busy(number), in(number)) + receive(number);
            default:
                return before;
            }
        });
    }

    // Until when the sender's interface is taken, after that step.
    double out(uint32_t number) {
        return once(outs_, number, [&] {
            const bool is_send = plan_.steps[number].kind() == SEND;
            const double before = out(origins_[number].interface);
            if (agreed(number) == is_send)
                return before;
            return std::max(before, is_send ? left(number) : start(number)) + wire(number);
        });
    }

    double start(uint32_t transfer) {
        const Origins &origins = origins_[transfer];
        const double latency = link(transfer).latency_ns;
        return std::max(left(origins.other) + latency, clock(origins.before)) + latency;
    }

    double gone(uint32_t transfer) {
        return within(transfer) ? start(transfer) + wire(transfer) : leaves(transfer, start(transfer));
    }

    // A message that is ready leaves an interface between nodes: at once, or behind those before.
    double leaves(uint32_t number, double ready) {
        const double before = out(origins_[number].interface);
        return std::max(ready + first(number), before + wire(number) - link(number).depth_ns);
    }
    double first(uint32_t number) const { return link(number).first_ns(size(number).bytes); }

    // When a message that is answered has come, and its receiver is ready.
    double met(uint32_t answer) {
        return std::max(arrival(origins_[answer].other), clock(origins_[answer].before));
    }

    double arrival(uint32_t number) {
        if (plan_.steps[number].kind() == ANSWER)
            return met(number) + link(number).answering_ns;
        if (plan_.steps[number].kind() == TRANSFER)
            return agreed(number) ? gone(number) + link(number).latency_ns : arrival(origins_[number].other);
        return (within(number) ? left(number) + wire(number) : leaves(number, left(number))) +
               link(number).latency_ns;
    }

    double in(uint32_t number) {
        return once(ins_, number, [&] {
            const double come = arrival(origins_[number].other);
            if (within(number))
                return come;
            return std::max(come, in(origins_[number].interface) + first(number));
        });
    }

    const Plan &plan_;
    const Network &network_;
    std::vector<Origins> origins_;
    std::map<uint32_t, double> clocks_, outs_, ins_;
};

} // namespace wulf
