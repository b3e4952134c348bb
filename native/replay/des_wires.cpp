// Interfaces and uplinks, which ranks and programs share.
#include <algorithm>

#include "replay/des.hpp"

namespace wulf {

// Messages of a rank that are ready come one after the other, so that only one of them is in the queue.
void Simulator::next_ready(uint32_t rank) {
    auto &state = ranks_[rank];
    const uint32_t message = state.first_ready;
    state.first_ready = messages_[message].next;
    messages_[message].next = NONE;
    if (state.first_ready != NONE)
        queue_.push({messages_[state.first_ready].a, EventKind::READY, 0, rank});
    enter(rank, message, now_);
}

// A message comes to the interface of its sender's node at that time.
void Simulator::enter(uint32_t rank, uint32_t message, double time_ns) {
    auto &node = nodes_[ranks_[rank].node];
    const Costs &costs = costs_of(message);
    if (node.is_shared || costs.pieces > 1) {
        queue(rank, message);
        return;
    }
    const double behind = node.out + costs.wire - costs.depth;
    node.out = std::max(time_ns, node.out) + costs.wire;
    sent(message, true, std::max(time_ns + costs.first, behind));
}

// Behind those of its own rank.
void Simulator::queue(uint32_t rank, uint32_t message) {
    auto &state = ranks_[rank];
    auto &node = nodes_[state.node];
    messages_[message].pieces_left = costs_of(message).pieces & MOST_PIECES;
    const bool is_first = state.first_queued == NONE;
    if (is_first)
        state.first_queued = message;
    else
        messages_[state.last_queued].next = message;
    state.last_queued = message;
    if (!is_first)
        return;
    if (node.first_in_ring == NONE)
        node.first_in_ring = rank;
    else
        ranks_[node.last_in_ring].next_in_ring = rank;
    node.last_in_ring = rank;
    if (!node.is_shared) {
        node.is_shared = true;
        queue_.push(
            {std::max(now_, node.out - costs_of(message).depth), EventKind::NEXT_PIECE, 0, state.node});
    }
}

// A piece of each rank in turn.
void Simulator::next_piece(uint32_t number) {
    auto &node = nodes_[number];
    const uint32_t rank = node.first_in_ring;
    auto &state = ranks_[rank];
    const uint32_t message = state.first_queued;
    auto &known = messages_[message];
    const Costs &costs = costs_of(message);
    const double behind = node.out + costs.piece_wire - costs.depth;
    node.out = std::max(now_, node.out) + costs.piece_wire;
    const double gone_ns = std::max(now_ + costs.piece_first, behind);
    known.pieces_left--;
    if (known.pieces_left == 0) {
        state.first_queued = known.next;
        known.next = NONE;
    }
    node.first_in_ring = state.next_in_ring;
    state.next_in_ring = NONE;
    if (state.first_queued != NONE) {
        if (node.first_in_ring == NONE)
            node.first_in_ring = rank;
        else
            ranks_[node.last_in_ring].next_in_ring = rank;
        node.last_in_ring = rank;
    }
    node.is_shared = node.first_in_ring != NONE;
    if (node.is_shared)
        queue_.push({gone_ns, EventKind::NEXT_PIECE, 0, number});
    sent(message, known.pieces_left == 0, gone_ns);
}

// A piece leaves the sender's interface at that time.
void Simulator::sent(uint32_t message, bool is_last, double time_ns) {
    const auto &known = messages_[message];
    const Costs &costs = costs_[known.size];
    if (is_last && costs.agreed)
        gone(message, time_ns);
    if (known.destination == NONE)
        return;
    queue_.push({time_ns + (route(message).empty() ? costs.latency : 0),
                 is_last ? EventKind::LAST_PIECE : EventKind::PIECE, 0, message});
}

// The uplinks that a message takes.
std::span<const uint32_t> Simulator::route(uint32_t message) const {
    if (ways_.empty())
        return {};
    const auto &one = program_.messages[message];
    return topology_.route(ranks_[one.source].node, ranks_[one.destination].node);
}

// A piece has come to the port to its receiver, which has no room for it: whether it comes again after a
// timeout. `in`: when it is through, otherwise.
bool Simulator::waits_for_timeout(uint32_t message, bool is_last, double &in) {
    const Costs &costs = costs_of(message);
    const bool is_heard_of = costs.pieces > 1 && hold(message);
    in = std::max(in, now_ + 2 * costs.latency);
    if (!is_last || is_heard_of)
        return false;
    let_go(message);
    timeouts_++;
    const auto once_more = static_cast<uint32_t>(route(message).size()) + 1;
    queue_.push({now_ + timeout_ns_, EventKind::LAST_PIECE, once_more, message});
    return true;
}

// A message of several pieces has a share of the buffer from now on; whether that is so large that its sender
// hears of what is lost.
bool Simulator::hold(uint32_t message) {
    auto &known = messages_[message];
    auto &node = nodes_[ranks_[known.destination].node];
    if (!known.is_held)
        node.held++;
    known.is_held = 1;
    return node.held * (FEWEST_SEGMENTS * SEGMENT_BYTES) <= buffer_bytes_;
}

void Simulator::let_go(uint32_t message) {
    auto &known = messages_[message];
    if (known.is_held)
        nodes_[ranks_[known.destination].node].held--;
    known.is_held = 0;
}

// Its last byte is at the end of the way before that stage: of an uplink, or of the receiver's interface. The
// bytes before went on as they came.
void Simulator::piece(uint32_t message, uint32_t stage, bool is_last) {
    const auto &known = messages_[message];
    const Costs &costs = costs_[known.size];
    const auto route = this->route(message);
    if (stage >= route.size()) {
        auto &node = nodes_[ranks_[known.destination].node];
        double in =
            std::max({now_, node.in + costs.piece_first, node.shaped_in + costs.piece_wire - costs.depth});
        if (in - now_ > room_ns_ && stage == route.size() && waits_for_timeout(message, is_last, in))
            return;
        node.in = in;
        // From the time on at which it may have begun to come: what one interface has shaped passes another
        // without a wait.
        node.shaped_in = std::max(now_ - costs.piece_first, node.shaped_in) + costs.piece_wire;
        if (!is_last)
            return;
        if (known.is_held)
            let_go(message);
        deliver(message, in);
        return;
    }
    double comes_for = costs.piece_first;
    for (uint32_t before = 0; before < stage; before++)
        comes_for = std::max(comes_for, costs.piece_bytes * topology_.ns_per_byte(route[before]));
    double &way = ways_[route[stage]];
    way = std::max(now_,
                   std::max(now_ - comes_for, way) + costs.piece_bytes * topology_.ns_per_byte(route[stage]));
    const bool is_through = stage + 1 == route.size();
    queue_.push({way + (is_through ? costs.latency : 0), is_last ? EventKind::LAST_PIECE : EventKind::PIECE,
                 stage + 1, message});
}

} // namespace wulf
