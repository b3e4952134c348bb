#include "replay/timeline.hpp"

#include <algorithm>

namespace wulf {

namespace {

// Adds up what ranks do, cell by cell.
class Accounts {
  public:
    Accounts(uint32_t ranks, const TimelineView &view)
        : view_(view), each_ns_(view.for_ns / static_cast<double>(view.cells)) {
        const uint32_t together =
            (ranks + static_cast<uint32_t>(view.rows) - 1) / static_cast<uint32_t>(view.rows);
        for (uint32_t first = 0; first < ranks; first += together) {
            TimelineRow row{first, std::min(first + together, ranks) - 1, {}};
            for (auto &cells : row.cells)
                cells.resize(view.cells);
            rows_.push_back(std::move(row));
        }
        together_ = together;
    }

    void add(uint32_t rank, Activity activity, double from_ns, double to_ns) {
        from_ns = std::max(from_ns - view_.from_ns, 0.0);
        to_ns = std::min(to_ns - view_.from_ns, view_.for_ns);
        if (from_ns >= to_ns)
            return;
        auto &row = rows_[rank / together_];
        auto &cells = row.cells[activity];
        const double whole = each_ns_ * (row.last_rank - row.first_rank + 1);
        for (auto cell = static_cast<size_t>(from_ns / each_ns_); cell < cells.size(); cell++) {
            const double end = static_cast<double>(cell + 1) * each_ns_;
            cells[cell] += (std::min(to_ns, end) - from_ns) / whole;
            if (to_ns <= end)
                return;
            from_ns = end;
        }
    }

    std::vector<TimelineRow> take() { return std::move(rows_); }

  private:
    const TimelineView view_;
    double each_ns_;
    uint32_t together_ = 1;
    std::vector<TimelineRow> rows_;
};

class Runner {
  public:
    Runner(const Plan &plan, const Network &network, const TimelineView &view)
        : plan_(plan), network_(network), accounts_(plan.ranks, view), clocks_(plan.ranks),
          messages_(plan.slots) {
        for (const auto &size : plan.sizes) {
            const auto &link = network.links[size.locality];
            const MessageCosts costs = costs_of(network, size);
            costs_.push_back(
                {costs, link.latency_ns, costs.wire - link.depth_ns, size.locality == WITHIN_NODE});
        }
    }

    Timeline run() {
        Timeline found;
        uint64_t left = 0;
        plan_.each([&](uint32_t, uint32_t rank, const Step &step) { left += is_of_first(rank, step); });
        left /= 2;
        plan_.each([&](uint32_t, uint32_t rank, const Step &step) {
            if (is_of_first(rank, step) && left-- == 0)
                found.middle_ns = clocks_[0].now;
            take(rank, step);
        });
        for (const auto &clock : clocks_)
            found.time_ns = std::max(found.time_ns, clock.now);
        found.rows = accounts_.take();
        return found;
    }

  private:
    struct Clock {
        double now = 0, out = 0, in = 0;
    };
    struct Costs : MessageCosts {
        double latency;
        double behind; // kernel.hpp
        bool is_within;
    };
    struct Known {
        double a = 0, b = 0;
        uint32_t size = 0;
    };

    void spend(uint32_t rank, Activity activity, double ns) {
        auto &now = clocks_[rank].now;
        accounts_.add(rank, activity, now, now + ns);
        now += ns;
    }

    void wait(uint32_t rank, double until_ns) {
        auto &now = clocks_[rank].now;
        accounts_.add(rank, WAITING, now, until_ns);
        now = std::max(now, until_ns);
    }

    static bool is_of_first(uint32_t rank, const Step &step) { return rank == 0 && step.kind() != TRANSFER; }

    void take(uint32_t rank, const Step &step) {
        switch (step.kind()) {
        case COMPUTE:
            spend(rank, COMPUTING, static_cast<double>(step.amount()) * network_.compute);
            break;
        case REDUCE:
            spend(rank, COMPUTING, static_cast<double>(step.amount()) * network_.reduce_per_byte_ns);
            break;
        case SEND:
            send(rank, step);
            break;
        case POST:
            messages_[step.slot()].b = clocks_[rank].now;
            break;
        case TRANSFER:
            transfer(step);
            break;
        case SENT:
            sent(rank, step);
            break;
        case RECEIVE:
            receive(rank, step);
            break;
        case ANSWER:
            answer(step);
            break;
        }
    }

    // When a message that is ready has left; the interface is taken.
    static double leave(Clock &sender, double ready, const Costs &costs) {
        if (costs.is_within)
            return ready + costs.wire;
        const double gone = std::max(ready + costs.first, sender.out + costs.behind);
        sender.out = std::max(ready, sender.out) + costs.wire;
        return gone;
    }

    void send(uint32_t rank, const Step &step) {
        const Costs &costs = costs_[step.size()];
        Clock &clock = clocks_[rank];
        spend(rank, OF_MESSAGES, costs.send);
        auto &known = messages_[step.slot()];
        known.size = step.size();
        if (costs.agreed) {
            known.a = clock.now;
            return;
        }
        known.a = leave(clock, clock.now, costs) + costs.latency;
        spend(rank, OF_MESSAGES, costs.after);
    }

    void transfer(const Step &step) {
        auto &known = messages_[step.slot()];
        const Costs &costs = costs_[known.size];
        if (!costs.agreed)
            return;
        const double begin = std::max(known.a + costs.latency, known.b) + costs.latency;
        known.b = leave(clocks_[step.sender()], begin, costs);
        known.a = known.b + costs.latency;
    }

    void answer(const Step &step) {
        auto &known = messages_[step.slot()];
        const Costs &costs = costs_[step.size()];
        const double met = std::max(known.a, known.b);
        known.a = met + costs.answering;
        known.b = met + costs.answered;
    }

    void sent(uint32_t rank, const Step &step) {
        const Costs &costs = costs_[step.size()];
        if (!step.is_mutual()) {
            wait(rank, messages_[step.slot()].b);
            return;
        }
        if (!costs.agreed)
            return;
        wait(rank, messages_[step.slot()].b + costs.after);
    }

    void receive(uint32_t rank, const Step &step) {
        const Costs &costs = costs_[step.size()];
        Clock &clock = clocks_[rank];
        double come = messages_[step.slot()].a;
        if (!costs.is_within)
            come = clock.in = std::max(come, clock.in + costs.first);
        if (clock.now + costs.busy >= come)
            spend(rank, OF_MESSAGES, costs.busy);
        else
            wait(rank, come);
        spend(rank, OF_MESSAGES, costs.receive);
    }

    const Plan &plan_;
    const Network &network_;
    Accounts accounts_;
    std::vector<Clock> clocks_;
    std::vector<Known> messages_;
    std::vector<Costs> costs_;
};

} // namespace

Timeline timeline(const Plan &plan, const Network &network, const TimelineView &view) {
    return Runner(plan, network, view).run();
}

} // namespace wulf
