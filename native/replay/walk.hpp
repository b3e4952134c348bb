// The longest paths through an evaluated plan, from the end to the beginning: all steps are looked at once,
// in reverse, and each network says of which clocks and messages the longest path is wanted. So no step needs
// to know on which others it depends.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/kernel.hpp"

namespace wulf {

// Networks: a bit for each.
using Few = uint8_t;

enum class Part {
    COMPUTE, // the rank's own time, or a sum: the step's amount
    SENDING, // the CPU's time at either end
    RECEIVING,
    BUSY,   // … before, of a message that had come
    AFTER,  // what is left of a send when its message has gone
    WIRE,   // the interface's time
    FIRST,  // the same of a message with nothing before it, where bursts are let through
    BEHIND, // … and of one behind others
    LATENCY,
    ANSWERING, // a message is through at its receiver, who has answered
    ANSWERED,  // its sender has heard of it, but for the latency
};

// What the kernel has chosen.
struct Choices {
    const Buffer<uint16_t> &of_steps;
    const Buffer<uint8_t> *gone_behind; // of transfers; nullptr where no network lets bursts through
};

// Calls `visit(network, part, number, rank, size)` for all that is on a longest path.
template <typename Visit> class Walk {
  public:
    // `agreed`: of each size, networks on which such a message is sent by agreement.
    Walk(const Plan &plan, std::span<const Few> agreed, Choices choices, Visit visit)
        : plan_(plan), agreed_(agreed), choices_(choices), visit_(visit), ranks_(plan.ranks),
          slots_(plan.slots) {}

    // Begin at the end of a rank, on a network.
    void want(size_t network, uint32_t rank) { ranks_[rank].clock |= static_cast<Few>(1U << network); }

    void run() {
        for (size_t run = plan_.runs.size(); run-- > 0;) {
            const uint32_t rank = plan_.runs[run].rank;
            const uint32_t first = run == 0 ? 0 : plan_.runs[run - 1].end;
            number_ = plan_.transfers > 0 ? plan_.runs[run].end : last_wanted(plan_.runs[run], first);
            while (number_-- > first)
                step(plan_.steps[number_], rank);
        }
    }

  private:
    struct OfRank {
        Few clock = 0, out = 0, in = 0;
    };
    struct OfSlot {
        Few arrived = 0, ready = 0;
        bool is_within = false;
        uint32_t size = 0; // noted by the steps behind TRANSFER, which does not say it
    };

    // Behind the last step of a run that is on a path, where all messages are eager: most runs have none.
    [[nodiscard]] uint32_t last_wanted(const Run &run, uint32_t first) const {
        const auto &rank = ranks_[run.rank];
        uint32_t end = run.end;
        if ((rank.clock | rank.out | rank.in) != 0)
            return end;
        if (wanted_slots_ == 0)
            return first;
        for (; end > first; end--) {
            const Step &step = plan_.steps[end - 1];
            if (step.kind() == SEND && slots_[step.slot()].arrived != 0)
                break;
        }
        return end;
    }

    void each(unsigned networks, Part part, uint32_t rank, uint32_t size = 0) {
        for (; networks != 0; networks &= networks - 1)
            visit_(static_cast<size_t>(std::countr_zero(networks)), part, number_, rank, size);
    }
    // Networks on which the first of two questions was answered by what the kernel asked about second.
    [[nodiscard]] Few first() const { return static_cast<Few>(choices_.of_steps[number_]); }
    [[nodiscard]] Few second() const { return static_cast<Few>(choices_.of_steps[number_] >> LANES); }
    // Take those networks out of a set, and return those that were in it.
    static Few taken(Few &from, unsigned which) {
        const auto found = static_cast<Few>(from & which);
        from = static_cast<Few>(from & ~which);
        return found;
    }

    void step(const Step step, uint32_t rank) {
        switch (step.kind()) {
        case COMPUTE:
        case REDUCE:
            each(ranks_[rank].clock, Part::COMPUTE, rank);
            break;
        case SEND:
            send(step, rank);
            break;
        case POST:
            ranks_[rank].clock |= taken(slots_[step.slot()].ready, ALL);
            break;
        case TRANSFER:
            transfer(step);
            break;
        case SENT:
            sent(step, rank);
            break;
        case ANSWER:
            answer(step, rank);
            break;
        case RECEIVE:
            note(step);
            receive(step, rank);
            break;
        }
    }

    void note(const Step step) {
        if (!step.is_mutual())
            return;
        slots_[step.slot()].size = step.size();
        slots_[step.slot()].is_within = step.is_within();
    }

    void sent(const Step step, uint32_t rank) {
        note(step);
        // One that is answered is no question of the network.
        const unsigned waits = step.is_mutual() ? agreed_[step.size()] : ALL;
        const Few waited = taken(ranks_[rank].clock, waits & second());
        each(step.is_mutual() ? waited : 0, Part::AFTER, rank, step.size());
        slots_[step.slot()].ready |= waited;
    }

    void answer(const Step step, uint32_t rank) {
        auto &slot = slots_[step.slot()];
        each(slot.arrived, Part::ANSWERING, rank, step.size());
        each(slot.ready, Part::ANSWERED, rank, step.size());
        each(slot.ready, Part::LATENCY, rank, step.size());
        const unsigned met = slot.arrived | slot.ready;
        slot.ready = static_cast<Few>(met & first());
        slot.arrived = static_cast<Few>(met & ~unsigned{first()});
    }

    void send(const Step step, uint32_t number) {
        auto &rank = ranks_[number];
        auto &slot = slots_[step.slot()];
        if ((slot.arrived | rank.out | rank.clock) == 0)
            return;
        const unsigned agreed = step.is_mutual() ? agreed_[step.size()] : 0;
        each(rank.clock & ~agreed, Part::AFTER, number, step.size());
        rank.clock |= taken(slot.arrived, agreed);
        unsigned gone = taken(slot.arrived, ALL);
        wanted_slots_ -= static_cast<uint32_t>(std::popcount(gone));
        each(gone, Part::LATENCY, number, step.size());
        if (step.is_within())
            each(gone, Part::WIRE, number, step.size());
        else
            gone = leaving(number, gone, taken(rank.out, ~agreed), second(), first(), step.size());
        rank.clock |= static_cast<Few>(gone);
        each(rank.clock, Part::SENDING, number, step.size());
    }

    // From when a message has left its interface (`gone`) and until when that is taken (`out`) to what was
    // before; returns networks on which that is the message itself.
    unsigned leaving(uint32_t sender, unsigned gone, unsigned out, unsigned is_behind, unsigned is_out_later,
                     uint32_t size) {
        auto &before = ranks_[sender].out;
        unsigned own = 0;
        if (choices_.gone_behind == nullptr) {
            out |= gone;
        } else {
            each(gone & is_behind, Part::BEHIND, sender, size);
            each(gone & ~is_behind, Part::FIRST, sender, size);
            before |= static_cast<Few>(gone & is_behind);
            own = gone & ~is_behind;
        }
        each(out, Part::WIRE, sender, size);
        before |= static_cast<Few>(out & is_out_later);
        return own | (out & ~is_out_later);
    }

    void transfer(const Step step) {
        auto &slot = slots_[step.slot()];
        auto &out = ranks_[step.sender()].out;
        const unsigned agreed = agreed_[slot.size];
        const unsigned arrived = taken(slot.arrived, agreed);
        each(arrived, Part::LATENCY, step.sender(), slot.size);
        unsigned gone = arrived | taken(slot.ready, agreed);
        if (slot.is_within)
            each(gone, Part::WIRE, step.sender(), slot.size);
        else
            gone = leaving(step.sender(), gone, taken(out, agreed),
                           choices_.gone_behind != nullptr ? (*choices_.gone_behind)[number_] : 0, second(),
                           slot.size);
        each(gone, Part::LATENCY, step.sender(), slot.size); // the answer's way
        slot.ready |= static_cast<Few>(gone & first());
        gone &= ~unsigned{first()};
        each(gone, Part::LATENCY, step.sender(), slot.size); // and the question's
        slot.arrived |= static_cast<Few>(gone);
    }

    void receive(const Step step, uint32_t number) {
        auto &rank = ranks_[number];
        if ((rank.clock | rank.in) == 0)
            return;
        each(rank.clock, Part::RECEIVING, number, step.size());
        unsigned come = taken(rank.clock, second());
        each(rank.clock, Part::BUSY, number, step.size());
        if (!step.is_within()) {
            come |= taken(rank.in, ALL);
            rank.in = static_cast<Few>(come & first());
            each(rank.in, choices_.gone_behind != nullptr ? Part::FIRST : Part::WIRE, number, step.size());
            come &= ~unsigned{first()};
        }
        slots_[step.slot()].arrived |= static_cast<Few>(come);
        wanted_slots_ += static_cast<uint32_t>(std::popcount(come));
    }

    static constexpr unsigned ALL = 0xFF;

    const Plan &plan_;
    std::span<const Few> agreed_;
    const Choices choices_;
    Visit visit_;
    std::vector<OfRank> ranks_;
    std::vector<OfSlot> slots_;
    uint32_t number_ = 0;       // of the step
    uint32_t wanted_slots_ = 0; // messages that networks want, where all are eager
};

} // namespace wulf
