#include "replay/plan.hpp"

#include <algorithm>
#include <optional>

#include "replay/records.hpp"
#include "replay/replayable.hpp"

namespace wulf {

namespace {

// A rank does so many things, then it is the next one's turn: a sender must not run ahead of its receivers
// for ever.
constexpr int TURN = 64;

class Planner {
  public:
    Planner(Trace &trace, const PlanOptions &options)
        : trace_(trace), options_(options), states_(trace.ranks()),
          turns_(states_.size(), states_.data(), sizeof(RankState)) {
        plan_.ranks = static_cast<uint32_t>(trace.ranks());
        plan_.trace_slots = progress_.of = trace.slots();
    }

    Plan plan() {
        require_least_memory(trace_);
        messages_.emplace(plan_, options_, trace_, turns_, progress_);
        records_.emplace(trace_, options_, *messages_, states_);
        for (uint32_t rank = 0; rank < plan_.ranks; rank++) {
            states_[rank].reserve();
            if (const auto late = trace_.late_receives(rank); late != LateReceives::NONE)
                states_[rank].senders = senders(trace_.stream(rank), late);
            trace_.stream(rank).rewind();
            turns_.again(rank);
        }
        try {
            do
                run();
            while (free_a_sender());
            messages_->finish();
        } catch (const std::bad_alloc &) {
            messages_->refuse_size();
        }
        for (const bool is_cause : {true, false})
            for (uint32_t rank = 0; rank < plan_.ranks; rank++)
                if (!states_[rank].is_done)
                    describe(rank, is_cause);
        return std::move(plan_);
    }

  private:
    // --- whose turn it is

    // Until nobody can go on.
    void run() {
        for (uint32_t rank = turns_.take(); rank != NO_RANK; rank = turns_.take()) {
            prefetch_next();
            first_run_ = std::min(first_run_, rank);
            if (turn(rank))
                turns_.again(rank);
        }
    }

    // Ask the machine for what the next rank's state, which has been asked for when it was woken, refers to.
    void prefetch_next() const {
        const uint32_t rank = turns_.next();
        if (rank == NO_RANK)
            return;
        const auto &state = states_[rank];
        __builtin_prefetch(state.open.data());
        __builtin_prefetch(state.moves.data() + state.next_move);
    }

    // False when the rank cannot go on.
    bool turn(uint32_t rank) {
        auto &state = states_[rank];
        for (int done = 0; done < TURN; done++) {
            if (!end(rank, state))
                return false;
            if (state.next_move < state.moves.size()) {
                records_->move(rank);
                continue;
            }
            Event event;
            if (!trace_.stream(rank).next(event)) {
                state.is_done = true;
                return false;
            }
            progress_.records++;
            records_->take(rank, event);
        }
        return true;
    }

    // All that is waited for. False when something of it has not come.
    bool end(uint32_t rank, RankState &state) {
        if (state.alone.slot != NO_SLOT && !messages_->end(rank, state.alone))
            return false;
        state.alone.slot = NO_SLOT;
        if (!state.waits)
            return true;
        for (; state.next_open < state.open.size(); state.next_open++)
            if (!messages_->end(rank, state.open[state.next_open]))
                return false;
        state.open.clear();
        state.next_open = 0;
        state.waits = false;
        return true;
    }

    // All wait for each other, and one of them to send: only a buffer lets the program go on. False when that
    // is not what is wrong. One at a time: it may free all others.
    bool free_a_sender() {
        // Those below the first that has run since wait for what they waited for then.
        for (uint32_t rank = first_run_; rank < plan_.ranks; rank++) {
            auto &state = states_[rank];
            if (state.is_done)
                continue;
            const Finish &finish = state.waited_for();
            if (!finish.is_send || !messages_->buffer(finish.slot))
                continue;
            turns_.wake(rank);
            first_run_ = rank;
            return true;
        }
        return false;
    }

    // What a rank waits for in vain: first those whose other rank has ended, then those that wait for these,
    // or for each other.
    void describe(uint32_t rank, bool is_cause) {
        const Finish &finish = states_[rank].waited_for();
        const uint32_t other = messages_->other_of(finish);
        if (states_[other].is_done != is_cause)
            return;
        const char *vain = finish.is_send ? "a message that nobody receives" : "a message that nobody sends";
        const std::string waits = "it waits for rank " + std::to_string(other) + ", which waits, too";
        plan_.unfinished.push_back("rank " + std::to_string(rank) + ", record " +
                                   std::to_string(trace_.stream(rank).place()) + ": " +
                                   (is_cause ? vain : waits));
    }

    Trace &trace_;
    const PlanOptions &options_;
    Plan plan_;
    std::vector<RankState> states_;
    Turns turns_;
    Progress progress_;
    std::optional<Messages> messages_;
    std::optional<Records> records_;
    uint32_t first_run_ = 0; // the lowest rank that has had a turn since a sender was freed
};

} // namespace

MessageCosts costs_of(const Network &network, const Size &size) {
    if (is_own_work(size.mode))
        return {.send = size.mode == Mode::MAKING ? network.making_ns : network.connecting_ns};
    const auto &link = network.links[size.locality];
    return {.send = link.send.at(size.bytes),
            .receive = link.receive.at(size.bytes),
            .after = link.after.at(size.bytes),
            .wire = link.wire.at(size.bytes),
            .busy = link.busy.at(size.bytes),
            .first = link.first_ns(size.bytes),
            .answering = link.answering_ns,
            .answered = link.answered_ns + link.latency_ns,
            .agreed = size.mode == Mode::SYNCHRONOUS ||
                      (size.mode == Mode::STANDARD && size.bytes > link.eager_bytes)};
}

uint64_t needed_bytes(const Plan &plan) {
    return plan.steps.size() * (sizeof(Step) + sizeof(uint16_t)) + plan.runs.size() * sizeof(Run) +
           plan.record_of.size() * sizeof(uint32_t);
}

Plan plan(Trace &trace, const PlanOptions &options) {
    require_replayable(trace, options.nodes);
    return Planner(trace, options).plan();
}

} // namespace wulf
