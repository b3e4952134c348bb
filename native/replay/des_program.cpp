#include "replay/des_program.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace wulf {

namespace {

// Messages by the plan's slots, which are used again when a message is over.
class Slots {
  public:
    Slots(uint32_t slots, std::vector<Message> &messages) : known_(slots), messages_(messages) {}

    // The message of a step, which may be its first.
    uint32_t of(const Step &step, uint32_t rank) {
        Known &known = known_[step.slot()];
        if (step.kind() == SEND) {
            if (known.number == NONE || known.is_sent)
                renew(known);
            known.is_sent = true;
        } else if (step.kind() == POST) {
            if (known.number == NONE || known.is_posted || known.is_received)
                renew(known);
            known.is_posted = true;
        } else if (step.kind() == RECEIVE) {
            known.is_received = true;
        }
        auto &message = messages_[known.number];
        if (step.kind() == SEND)
            message.source = rank;
        else if (step.kind() != SENT)
            message.destination = rank;
        return known.number;
    }

  private:
    struct Known {
        uint32_t number = NONE;
        bool is_sent = false, is_posted = false, is_received = false;
    };

    void renew(Known &known) {
        if (messages_.size() >= NONE)
            throw InputError("more than " + std::to_string(NONE) + " messages: trace a part of the program");
        known = {.number = static_cast<uint32_t>(messages_.size())};
        messages_.emplace_back();
    }

    std::vector<Known> known_;
    std::vector<Message> &messages_;
};

// A message that goes, or is answered, does so whoever has seen to it.
bool is_of_its_rank(StepKind kind) { return kind != TRANSFER && kind != ANSWER; }

class Builder {
  public:
    Builder(Program &program, const Plan &plan, Trace &trace)
        : to_(program), plan_(plan), first_rank_(program.ranks()),
          first_size_(static_cast<uint32_t>(program.sizes.size())), slots_(plan.slots, program.messages),
          ranks_(plan.ranks) {
        for (uint32_t rank = 0; rank < plan.ranks; rank++)
            ranks_[rank].places = choice_places(trace, rank);
    }

    void build(Part &part) {
        make_room();
        to_.sizes.insert(to_.sizes.end(), plan_.sizes.begin(), plan_.sizes.end());
        plan_.each([&](uint32_t number, uint32_t rank, const Step &from) {
            if (from.kind() == COMPUTE)
                ranks_[rank].compute_ns += from.amount();
            else if (is_of_its_rank(from.kind()))
                step(from, rank, plan_.record_of[number]);
        });
        for (uint32_t rank = 0; rank < plan_.ranks; rank++) {
            if (const uint32_t compute_ns = compute(rank); compute_ns > 0)
                put(rank, {Op::COMPUTE, 0, compute_ns});
            borders(rank, NONE);
            part.wild += ranks_[rank].places.wild;
            part.chosen += ranks_[rank].places.chosen;
        }
        if (!to_.choices.empty())
            note_receives();
    }

  private:
    struct RankState {
        ChoicePlaces places;
        uint32_t next_op = 0;
        size_t choice = 0, block = 0; // that comes next; block: of that choice, all of them: its end
        uint32_t open = NONE;         // block that is being filled
        size_t begun = 0;
        uint64_t compute_ns = 0; // before its next operation
    };

    // Each rank's operations are together.
    void make_room() {
        std::vector<uint64_t> counts(plan_.ranks), compute_ns(plan_.ranks);
        plan_.each([&](uint32_t, uint32_t rank, const Step &step) {
            if (step.kind() == COMPUTE)
                compute_ns[rank] += step.amount();
            else if (is_of_its_rank(step.kind()))
                counts[rank] += 1 + whole_parts(std::exchange(compute_ns[rank], 0)) +
                                (step.kind() == REDUCE ? whole_parts(step.amount()) : 0);
        });
        for (uint32_t rank = 0; rank < plan_.ranks; rank++)
            if (compute_ns[rank] > 0)
                counts[rank] += 1 + whole_parts(compute_ns[rank]);
        uint64_t sum = to_.ops.size();
        for (uint32_t rank = 0; rank < plan_.ranks; rank++) {
            ranks_[rank].next_op = static_cast<uint32_t>(sum);
            sum += counts[rank];
            for (const auto &choice : ranks_[rank].places.choices)
                sum += 1 + choice.blocks.size();
            if (sum >= NONE)
                throw InputError("more than " + std::to_string(NONE) +
                                 " operations: trace a part of the program");
            to_.first_op.push_back(static_cast<uint32_t>(sum));
        }
        to_.ops.resize(sum);
    }

    void put(uint32_t rank, const Op &op) { to_.ops[ranks_[rank].next_op++] = op; }

    // An operation has 32 bits for what is computed or added up; of what is above that, so many parts go
    // before it.
    static uint64_t whole_parts(uint64_t amount) { return amount == 0 ? 0 : (amount - 1) / UINT32_MAX; }

    // What a rank computes before the next operation.
    uint32_t compute(uint32_t rank) {
        uint64_t left = std::exchange(ranks_[rank].compute_ns, 0);
        for (uint64_t parts = whole_parts(left); parts > 0; parts--) {
            put(rank, {Op::COMPUTE, 0, UINT32_MAX});
            left -= UINT32_MAX;
        }
        return static_cast<uint32_t>(left);
    }

    void step(const Step &from, uint32_t rank, uint32_t record) {
        uint32_t compute_ns = compute(rank);
        if (record >= next_border(rank))
            borders(rank, record, std::exchange(compute_ns, 0));
        if (from.kind() == REDUCE) {
            reduce(rank, from.amount(), compute_ns);
            return;
        }
        const Op::Kind kind = kind_of(from.kind(), rank, record);
        put(rank, {kind, message_of(from, rank, record), compute_ns});
    }

    void reduce(uint32_t rank, uint64_t bytes, uint32_t compute_ns) {
        for (uint64_t parts = whole_parts(bytes); parts > 0; parts--) {
            put(rank, {Op::REDUCE, UINT32_MAX, std::exchange(compute_ns, 0)});
            bytes -= UINT32_MAX;
        }
        put(rank, {Op::REDUCE, static_cast<uint32_t>(bytes), compute_ns});
    }

    Op::Kind kind_of(StepKind kind, uint32_t rank, uint32_t record) {
        switch (kind) {
        case REDUCE:
            return Op::REDUCE;
        case SEND:
            return Op::SEND;
        case POST:
            return is_begun_for_any(rank, record) ? Op::BEGIN_ANY : Op::POST;
        case SENT:
            return Op::SENT;
        default:
            return Op::RECEIVE;
        }
    }

    uint32_t message_of(const Step &from, uint32_t rank, uint32_t record) {
        const uint32_t number = slots_.of(from, first_rank_ + rank);
        if (from.kind() == SEND)
            to_.messages[number].size = (first_size_ + from.size()) & ((1U << 30) - 1);
        about(rank, from.kind(), record, number);
        return number;
    }

    // --- choices
    // ----------------------------------------------------------------------------------------------

    // The record at which the next block begins or the last one ends.
    [[nodiscard]] uint32_t next_border(uint32_t rank) const {
        const auto &state = ranks_[rank];
        if (state.choice == state.places.choices.size())
            return NONE;
        const auto &choice = state.places.choices[state.choice];
        return state.block < choice.blocks.size() ? choice.blocks[state.block].record : choice.end;
    }

    // All borders up to a record; what was computed goes before them.
    void borders(uint32_t rank, uint32_t record, uint32_t compute_ns = 0) {
        auto &state = ranks_[rank];
        while (state.choice < state.places.choices.size() && record >= next_border(rank)) {
            const auto &places = state.places.choices[state.choice];
            if (state.block == 0) {
                put(rank, {Op::CHOICE, static_cast<uint32_t>(to_.choices.size()), compute_ns});
                to_.choices.push_back({.chosen = places.chosen,
                                       .rank = first_rank_ + rank,
                                       .first_block = static_cast<uint32_t>(to_.blocks.size()),
                                       .blocks = static_cast<uint32_t>(places.blocks.size())});
                add_blocks(places);
            } else {
                put(rank, {Op::BLOCK_END, to_.blocks[state.open].choice, compute_ns});
            }
            compute_ns = 0;
            if (state.block < places.blocks.size()) {
                const auto &choice =
                    to_.choices[state.block == 0 ? to_.choices.size() - 1 : to_.blocks[state.open].choice];
                state.open = choice.first_block + static_cast<uint32_t>(state.block++);
                to_.blocks[state.open].first_op = state.next_op;
            } else {
                to_.choices[to_.blocks[state.open].choice].end_op = state.next_op;
                state.open = NONE;
                state.choice++;
                state.block = 0;
            }
        }
    }

    void add_blocks(const ChoicePlace &places) {
        std::unordered_map<uint32_t, uint32_t> last; // of each partner
        for (const auto &place : places.blocks) {
            const auto number = static_cast<uint32_t>(to_.blocks.size());
            to_.blocks.push_back({.choice = static_cast<uint32_t>(to_.choices.size() - 1), .first_op = 0});
            const auto [found, is_first] = last.try_emplace(place.partner, number);
            if (!is_first) {
                to_.blocks[number].before = found->second;
                to_.blocks[found->second].after = number;
                found->second = number;
            }
        }
    }

    // The first message that is waited for in a block is what it is about.
    void about(uint32_t rank, StepKind kind, uint32_t record, uint32_t message) {
        const auto &state = ranks_[rank];
        if (state.open == NONE || to_.blocks[state.open].message != NONE)
            return;
        const auto &places = state.places.choices[state.choice];
        const bool is_head = record == places.blocks[state.block - 1].record;
        if (places.chosen == Chosen::BY_ENVELOPE ? kind != RECEIVE
                                                 : !is_head || (kind != RECEIVE && kind != SENT))
            return;
        to_.blocks[state.open].message = message;
        auto &one = to_.messages[message];
        auto &blocks = kind == SENT ? to_.block_of_sent : to_.block_of_come;
        if (kind == SENT)
            one.is_chosen_sent = 1;
        else
            one.is_chosen_come = 1;
        blocks.resize(to_.messages.size(), NONE);
        blocks[message] = state.open;
    }

    bool is_begun_for_any(uint32_t rank, uint32_t record) {
        auto &state = ranks_[rank];
        const auto &begun = state.places.begun;
        while (state.begun < begun.size() && begun[state.begun] < record)
            state.begun++;
        return state.begun < begun.size() && begun[state.begun] == record;
    }

    void note_receives() {
        for (const auto &op : to_.ops)
            if (op.kind == Op::BEGIN_ANY && to_.messages[op.number].is_chosen_come)
                to_.choices[to_.blocks[to_.block_of_come[op.number]].choice].has_receives = true;
    }

    Program &to_;
    const Plan &plan_;
    const uint32_t first_rank_, first_size_;
    Slots slots_;
    std::vector<RankState> ranks_;
};

} // namespace

void append(Program &program, const std::string &name, const Plan &plan, Trace &trace,
            const std::vector<uint32_t> &nodes) {
    Part part{.name = name, .first_rank = program.ranks(), .ranks = plan.ranks};
    part.messages = program.messages.size();
    Builder(program, plan, trace).build(part);
    part.messages = program.messages.size() - part.messages;
    for (uint32_t rank = 0; rank < plan.ranks; rank++)
        program.nodes.push_back(nodes.empty() ? rank : nodes[rank]);
    program.parts.push_back(std::move(part));
}

} // namespace wulf
