#include "replay/des.hpp"

#include <algorithm>

namespace wulf {

namespace {

// A rank sends so many messages before their time at most, so that few are on their way at once.
constexpr uint32_t MOST_AHEAD = 64;

} // namespace

Simulator::Simulator(const Program &program, const Topology &topology)
    : program_(program), topology_(topology), ranks_(program.ranks()) {
    uint32_t nodes = 0;
    for (const uint32_t node : program.nodes)
        nodes = std::max(nodes, node + 1);
    nodes_.resize(nodes);
}

void Simulator::prepare_costs(const Network &network) {
    costs_.clear();
    for (const auto &size : program_.sizes) {
        const auto &link = network.links[size.locality];
        const MessageCosts costs = wulf::costs_of(network, size);
        const uint64_t pieces =
            std::clamp<uint64_t>((size.bytes + PIECE_BYTES - 1) / PIECE_BYTES, 1, MOST_PIECES);
        costs_.push_back({.send = costs.send,
                          .receive = costs.receive,
                          .busy = costs.busy,
                          .after = costs.after,
                          .wire = costs.wire,
                          .piece_wire = costs.wire / static_cast<double>(pieces),
                          .latency = link.latency_ns,
                          .first = costs.first,
                          .piece_first = costs.first / static_cast<double>(pieces),
                          .depth = link.depth_ns,
                          .piece_bytes = static_cast<double>(size.bytes) / static_cast<double>(pieces),
                          .pieces = static_cast<uint32_t>(pieces),
                          .answering = costs.answering,
                          .answered = costs.answered,
                          .agreed = costs.agreed,
                          .is_answered = size.mode == Mode::ANSWERED,
                          .is_within = size.locality == WITHIN_NODE});
    }
}

void Simulator::prepare_messages() {
    messages_.resize(program_.messages.size());
    for (size_t number = 0; number < messages_.size(); number++) {
        const auto &of = program_.messages[number];
        auto &message = messages_[number] = {};
        message.destination = of.destination;
        message.size = of.size;
        message.is_chosen_come = is_as_recorded_ ? 0U : of.is_chosen_come;
        message.is_chosen_sent = is_as_recorded_ ? 0U : of.is_chosen_sent;
        const Costs &costs = costs_[of.size];
        if (!costs.is_within && (costs.agreed || costs.pieces > 1))
            ranks_[of.source].is_alone = false;
    }
}

void Simulator::prepare(const Network &network, uint64_t seed) {
    queue_.clear(seed);
    now_ = 0;
    compute_ = network.compute;
    reduce_ = network.reduce_per_byte_ns;
    const Link &link = network.links[BETWEEN_NODES];
    room_ns_ = link.buffer_ns();
    buffer_bytes_ = link.buffer_bytes;
    timeout_ns_ = link.timeout_ns;
    events_ = moved_ = timeouts_ = 0;
    finished_ = 0;
    std::fill(nodes_.begin(), nodes_.end(), NodeState{});
    for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
        auto &state = ranks_[rank] = {};
        state.next = program_.first_op[rank];
        state.end = program_.first_op[rank + 1];
        state.node = program_.nodes[rank];
        awake_.push_back(rank);
        nodes_[state.node].ranks++;
    }
    for (auto &rank : ranks_)
        rank.is_alone = nodes_[rank.node].ranks == 1;
    prepare_costs(network);
    prepare_messages();
    ways_.assign(topology_.ways(), 0);
    blocks_.assign(program_.blocks.size(), {});
    choices_.assign(program_.choices.size(), {});
}

Outcome Simulator::run(const Network &network, uint64_t seed) {
    is_as_recorded_ = false;
    if (attempt(network, seed))
        return outcome();
    is_as_recorded_ = true;
    if (!program_.choices.empty() && attempt(network, seed))
        return outcome();
    throw InputError("all ranks that have not ended wait for each other");
}

// False where some wait for ever.
bool Simulator::attempt(const Network &network, uint64_t seed) {
    prepare(network, seed);
    for (;;) {
        while (!awake_.empty()) {
            const uint32_t rank = awake_.back();
            awake_.pop_back();
            go_on(rank);
        }
        if (queue_.empty())
            return finished_ == ranks_.size();
        const TimedEvent event = queue_.pop();
        now_ = event.time_ns;
        events_++;
        happen(event);
    }
}

void Simulator::happen(const TimedEvent &event) {
    switch (event.kind) {
    case EventKind::READY:
        next_ready(event.number);
        break;
    case EventKind::TRANSFER:
        enter(program_.messages[event.number].source, event.number, now_);
        break;
    case EventKind::NEXT_PIECE:
        next_piece(event.number);
        break;
    case EventKind::PIECE:
    case EventKind::LAST_PIECE:
        piece(event.number, event.stage, event.kind == EventKind::LAST_PIECE);
        break;
    case EventKind::ANNOUNCED:
        announced(event.number);
        break;
    case EventKind::COME:
        come(event.number, now_);
        chosen_come(event.number);
        break;
    case EventKind::GONE:
        arrived(program_.block_of_sent[event.number]);
        break;
    case EventKind::RESUME:
        wake(event.number);
        break;
    }
}

Outcome Simulator::outcome() const {
    Outcome found;
    found.events = events_;
    found.moved = moved_;
    found.timeouts = timeouts_;
    found.is_as_recorded = is_as_recorded_;
    for (const auto &rank : ranks_)
        found.rank_ns.push_back(rank.clock);
    for (const auto &part : program_.parts) {
        const auto first = found.rank_ns.begin() + part.first_rank;
        found.part_ns.push_back(*std::max_element(first, first + part.ranks));
    }
    found.time_ns = *std::max_element(found.part_ns.begin(), found.part_ns.end());
    return found;
}

// --- ranks
// --------------------------------------------------------------------------------------------------

// Until it must wait. It may be ahead of all others: what it meets there is the same whenever it does, but
// for choices, at which it waits until they have come as far.
void Simulator::go_on(uint32_t rank) {
    auto &state = ranks_[rank];
    state.ahead = MOST_AHEAD;
    while (state.next < state.end) {
        const Op &op = program_.ops[state.next];
        if (!state.is_back)
            state.clock += static_cast<double>(op.compute_ns) * compute_;
        state.is_back = false;
        if (!step(rank, op)) {
            state.is_back = true;
            return;
        }
    }
    finished_++;
}

// False where the rank must wait, at this operation.
bool Simulator::step(uint32_t rank, const Op &op) {
    auto &state = ranks_[rank];
    switch (op.kind) {
    case Op::COMPUTE:
        break;
    case Op::REDUCE:
        state.clock += static_cast<double>(op.number) * reduce_;
        break;
    case Op::SEND:
        send(rank, op.number);
        break;
    case Op::POST:
        post(op.number, state.clock);
        break;
    case Op::SENT:
        if (!wait_until_sent(state, op.number))
            return false;
        break;
    case Op::RECEIVE:
        if (!wait_until_received(state, op.number))
            return false;
        break;
    case Op::BEGIN_ANY:
        if (!messages_[op.number].is_chosen_come) {
            post(op.number, state.clock);
        } else if (is_in_step(rank)) {
            begin_any(op.number);
        } else {
            return false;
        }
        break;
    case Op::CHOICE:
    case Op::BLOCK_END:
        if (!is_as_recorded_)
            return is_in_step(rank) && choose(rank, op.number);
        break;
    }
    state.next++;
    return true;
}

void Simulator::send(uint32_t rank, uint32_t message) {
    auto &state = ranks_[rank];
    auto &known = messages_[message];
    const Costs &costs = costs_[known.size];
    state.idle_ns = 0;
    state.clock += costs.send;
    const double ready = known.a = state.clock;
    if (costs.agreed) {
        known.is_asked = 1;
        if (known.is_chosen_come)
            queue_.push({state.clock + costs.latency, EventKind::ANNOUNCED, 0, message});
        if (known.is_posted)
            agree(message);
        return;
    }
    if (known.is_chosen_sent && !costs.is_answered)
        gone(message, ready);
    state.clock += costs.after;
    if (costs.is_within) {
        deliver(message, ready + costs.wire + costs.latency);
    } else if (state.first_ready != NONE) {
        messages_[state.last_ready].next = message;
        state.last_ready = message;
    } else if (state.is_alone && state.ahead > 0) {
        state.ahead--;
        events_++;
        enter(rank, message, ready);
    } else {
        state.first_ready = state.last_ready = message;
        queue_.push({ready, EventKind::READY, 0, rank});
    }
}

void Simulator::post(uint32_t message, double time_ns) {
    auto &known = messages_[message];
    const Costs &costs = costs_[known.size];
    if (known.is_posted || (costs.is_answered && known.has_come))
        return;
    known.b = time_ns;
    known.is_posted = 1;
    if (!known.is_asked)
        return;
    if (costs.is_answered)
        answer(message);
    else
        agree(message);
}

// It has come, and its receiver is ready for it: it is through when that has answered.
void Simulator::answer(uint32_t message) {
    const auto &known = messages_[message];
    const Costs &costs = costs_[known.size];
    const double met = std::max(known.a, known.b);
    gone(message, met + costs.answered);
    through(message, met + costs.answering);
}

// Both are ready: a question, an answer, and the message goes.
void Simulator::agree(uint32_t message) {
    const auto &known = messages_[message];
    const Costs &costs = costs_of(message);
    const double start = std::max(known.a + costs.latency, known.b) + costs.latency;
    if (!costs.is_within) {
        queue_.push({start, EventKind::TRANSFER, 0, message});
        return;
    }
    gone(message, start + costs.wire);
    deliver(message, start + costs.wire + costs.latency);
}

bool Simulator::wait_until_sent(RankState &rank, uint32_t message) {
    const Costs &costs = costs_of(message);
    if (!costs.agreed && !costs.is_answered)
        return true;
    const auto &known = messages_[message];
    rank.waits_for = known.has_gone ? NONE : message;
    if (known.has_gone)
        rank.clock = std::max(rank.clock, known.b + (costs.agreed ? costs.after : 0));
    return known.has_gone != 0;
}

bool Simulator::wait_until_received(RankState &rank, uint32_t message) {
    const auto &known = messages_[message];
    const Costs &costs = costs_[known.size];
    if (costs.agreed || costs.is_answered) // the receive was said to be for a smaller one
        post(message, rank.clock);
    rank.waits_for = known.has_come ? NONE : message;
    if (!known.has_come)
        return false;
    rank.clock = std::max({rank.clock + costs.busy - rank.idle_ns, rank.clock, known.a}) + costs.receive;
    rank.idle_ns = 0;
    return true;
}

// It has left the sender's interface, or will at that time.
void Simulator::gone(uint32_t message, double time_ns) {
    auto &known = messages_[message];
    const uint32_t rank = program_.messages[message].source;
    known.b = time_ns;
    known.has_gone = 1;
    if (known.is_chosen_sent)
        queue_.push({time_ns, EventKind::GONE, 0, message});
    if (ranks_[rank].waits_for == message)
        wake(rank);
}

// It has come, or will at that time.
void Simulator::deliver(uint32_t message, double time_ns) {
    if (messages_[message].is_chosen_come)
        queue_.push({time_ns, EventKind::COME, 0, message});
    else
        come(message, time_ns);
}

void Simulator::come(uint32_t message, double time_ns) {
    auto &known = messages_[message];
    if (!costs_[known.size].is_answered) {
        through(message, time_ns);
        return;
    }
    known.a = time_ns;
    known.is_asked = 1;
    // Which receive takes one that is chosen turns out later: it is answered as it comes.
    if (known.is_posted || known.is_chosen_come)
        answer(message);
}

// Its receiver can go on with it then.
void Simulator::through(uint32_t message, double time_ns) {
    auto &known = messages_[message];
    const uint32_t rank = known.destination;
    known.a = time_ns;
    known.has_come = 1;
    if (rank != NONE && ranks_[rank].waits_for == message)
        wake(rank);
}

void Simulator::wake(uint32_t rank) {
    ranks_[rank].waits_for = NONE;
    awake_.push_back(rank);
}

} // namespace wulf
