#include "replay/records.hpp"

#include <algorithm>

#include "replay/record_kinds.hpp"

namespace wulf {

namespace {

constexpr uint64_t UNKNOWN_BYTES = UINT64_MAX;
// No record is of more; sums over all ranks are then below 2^64.
constexpr uint64_t MOST_BYTES = uint64_t{1} << 42;

} // namespace

// --- messages ------------------------------------------------------------------------------------------

const Place &Records::place(uint32_t rank, uint16_t number) {
    auto &place = states_[rank].place;
    if (place.number != number) {
        const uint32_t global = trace_.local(rank, number).global;
        place = {number, context_of(global), trace_.communicators()[global].members};
    }
    return place;
}

uint32_t Records::world_rank(uint32_t rank, std::span<const int32_t> members, int32_t peer) const {
    if (peer < 0 || static_cast<size_t>(peer) >= members.size())
        trace_.stream(rank).fail("rank " + std::to_string(peer) + " of a communicator of " +
                                 std::to_string(members.size()));
    return static_cast<uint32_t>(members[static_cast<size_t>(peer)]);
}

uint64_t Records::sound_bytes(uint32_t rank, uint64_t bytes) const {
    if (bytes > MOST_BYTES)
        trace_.stream(rank).fail("a message of " + std::to_string(bytes) + " B");
    return bytes;
}

// NO_SLOT where there is nothing to wait for.
uint32_t Records::begin_send(uint32_t rank, const trace_record &record) {
    if (record.peer == TRACE_NOBODY)
        return NO_SLOT;
    const auto &[number, context, members] = place(rank, record.comm);
    const uint32_t to = world_rank(rank, members, record.peer);
    return messages_.send({context, rank, to, record.tag}, sound_bytes(rank, record.bytes),
                          mode_of(record.kind));
}

uint32_t Records::begin_receive(uint32_t rank, const trace_record &record) {
    Sender sender{record.peer, record.tag};
    const bool ends_later = record.kind == TRACE_IRECV || record.kind == TRACE_RECV_INIT;
    if (ends_later && is_late(trace_.late_receives(rank), record))
        sender = late_sender(rank);
    if (sender.peer == TRACE_NOBODY || sender.peer == TRACE_ANY)
        return NO_SLOT; // of one from anybody: it never ended
    const auto &[number, context, members] = place(rank, record.comm);
    const uint32_t from = world_rank(rank, members, sender.peer);
    return messages_.post({context, from, rank, sender.tag}, record.bytes);
}

Sender Records::late_sender(uint32_t rank) {
    auto &state = states_[rank];
    if (state.next_sender == state.senders.size())
        trace_.stream(rank).fail("a receive that was not counted");
    return state.senders[state.next_sender++];
}

// --- requests ------------------------------------------------------------------------------------------

Request &Records::request(uint32_t rank, uint32_t number) {
    auto &requests = states_[rank].requests;
    if (number != 0 && number < requests.size())
        return requests[number];
    // Numbers are used again, so there are no more than records; a damaged one must not ask for memory.
    constexpr uint64_t usual = 1024;
    const uint64_t most = std::max(usual, trace_.stream(rank).header().slots + 1);
    if (number == 0 || number >= most)
        trace_.stream(rank).fail("damaged: a request of number " + std::to_string(number));
    requests.resize(number + 1);
    return requests[number];
}

void Records::begin_request(uint32_t rank, Request &request, Request::Kind kind, const trace_record &record) {
    request.kind = kind;
    request.is_active = true;
    request.slot = kind == Request::SEND ? begin_send(rank, record) : begin_receive(rank, record);
}

void Records::make_request(uint32_t rank, const trace_record &record, Request::Kind kind) {
    auto &made = request(rank, record.request);
    made = {};
    made.kind = kind;
    made.is_persistent = true;
    made.begun = std::make_unique<Entry>(Entry{.record = record, .sizes = {}});
}

void Records::start_request(uint32_t rank, uint32_t number) {
    auto &started = request(rank, number);
    if (!started.is_persistent || started.is_active)
        trace_.stream(rank).fail("the start of a request that was not made for it, or runs");
    begin_request(rank, started, started.kind, started.begun->record);
}

void Records::end_request(uint32_t rank, uint32_t number) {
    auto &ended = request(rank, number);
    if (!ended.is_active)
        return; // a persistent one that was not started, or one that was waited for before
    ended.is_active = false;
    if (ended.kind == Request::COLLECTIVE)
        enter(rank, ended.begun->record, ended.begun->sequence, std::move(ended.begun->sizes));
    else
        finish(rank, ended.slot, ended.kind == Request::SEND);
}

// A message that nobody waits for goes all the same.
void Records::free_request(uint32_t rank, uint32_t number) {
    auto &freed = request(rank, number);
    if (freed.is_active && freed.kind == Request::SEND && freed.slot != NO_SLOT)
        messages_.forget(freed.slot);
    freed = {};
}

// --- collectives ---------------------------------------------------------------------------------------

void Records::collective(uint32_t rank, const Event &event) {
    auto &state = states_[rank];
    const auto &record = event.record;
    const auto kind = static_cast<trace_kind>(record.kind);
    const auto &members = place(rank, record.comm).members;
    if (has_root(kind))
        world_rank(rank, members, record.peer);
    static_cast<void>(sound_bytes(rank, record.bytes));
    if (record.comm >= state.sequences.size())
        state.sequences.resize(size_t{record.comm} + 1);
    const uint32_t sequence = state.sequences[record.comm]++;
    if (!(record.flags & TRACE_NONBLOCKING)) {
        enter(rank, record, sequence, event.payload.empty() ? std::vector<uint64_t>() : sizes(rank, event));
        return;
    }
    auto &begun = request(rank, record.request);
    begun = {};
    begun.kind = Request::COLLECTIVE;
    begun.is_active = true;
    begun.begun = std::make_unique<Entry>(Entry{record, sequence, sizes(rank, event)});
}

std::vector<uint64_t> Records::sizes(uint32_t rank, const Event &event) const {
    std::vector<uint64_t> found(event.sizes());
    for (size_t place = 0; place < found.size(); place++)
        found[place] = sound_bytes(rank, event.size_at(place));
    const auto &local = trace_.local(rank, event.record.comm);
    const size_t wanted = is_neighbourhood(static_cast<trace_kind>(event.record.kind))
                              ? local.targets.size()
                              : trace_.communicators()[local.global].members.size();
    if (!found.empty() && found.size() != wanted)
        trace_.stream(rank).fail(std::to_string(found.size()) + " sizes for " + std::to_string(wanted) +
                                 " ranks");
    return found;
}

void Records::enter(uint32_t rank, const trace_record &record, uint32_t sequence,
                    std::vector<uint64_t> sizes) {
    auto &state = states_[rank];
    const auto kind = static_cast<trace_kind>(record.kind);
    const auto &members = place(rank, record.comm).members;
    messages_.called(rank, kind);
    if (kind == TRACE_MAKE_COMMUNICATOR && members.size() > 1)
        messages_.work(rank, Mode::MAKING);
    state.sequence = sequence;
    state.next_move = 0;
    // Programs call the same again and again.
    const auto &last = state.expanded;
    const bool is_begun = (record.flags & TRACE_NONBLOCKING) != 0;
    if (state.is_same && sizes.empty() && last.kind == record.kind && last.comm == record.comm &&
        last.peer == record.peer && last.bytes == record.bytes &&
        is_begun == ((last.flags & TRACE_NONBLOCKING) != 0))
        return;
    state.is_same = sizes.empty();
    state.expanded = record;
    state.has_unknown_parts = has_unknown_parts(kind);
    state.moves.clear();
    const auto &local = trace_.local(rank, record.comm);
    CollectiveCall call{.kind = kind,
                        .rank = local.rank,
                        .ranks = static_cast<int32_t>(members.size()),
                        .root = has_root(kind) ? record.peer : TRACE_NOBODY,
                        .bytes = record.bytes,
                        .sizes = std::move(sizes),
                        .is_begun = is_begun};
    if (is_neighbourhood(kind)) {
        call.sources = &local.sources;
        call.targets = &local.targets;
    }
    expand(call, rules_, state.moves);
}

void Records::move(uint32_t rank) {
    auto &state = states_[rank];
    const Move move = state.moves[state.next_move++];
    if (move.kind == Move::WAIT) {
        state.waits = true;
        return;
    }
    if (move.kind == Move::REDUCE) {
        messages_.reduce(rank, move.bytes);
        return;
    }
    const bool is_send = move.kind == Move::SEND || move.kind == Move::BEGIN_SEND;
    const auto peer = static_cast<uint32_t>(state.place.members[move.peer]);
    // Of ranks that call different collectives at the same place no messages meet.
    const uint32_t which = state.sequence ^ uint32_t { state.expanded.kind } << 24;
    const Envelope envelope{.context = of_collectives(state.place.context),
                            .source = is_send ? rank : peer,
                            .destination = is_send ? peer : rank,
                            .tag = static_cast<int32_t>(which)};
    const uint64_t most = state.has_unknown_parts ? UNKNOWN_BYTES : uint64_t{move.bytes};
    const uint32_t slot =
        is_send ? messages_.send(envelope, move.bytes, Mode::STANDARD) : messages_.post(envelope, most);
    if (move.kind == Move::SEND || move.kind == Move::RECEIVE)
        finish(rank, slot, is_send);
    else if (slot != NO_SLOT)
        state.open.push_back({slot, is_send});
}

// --- records -------------------------------------------------------------------------------------------

void Records::take(uint32_t rank, const Event &event) {
    const auto &record = event.record;
    if (record.kind > TRACE_OTHER) // the last of them: no value of the enumeration
        refuse_kind(rank, record.kind);
    messages_.compute(rank, event.compute_ns);
    messages_.called(rank, static_cast<trace_kind>(record.kind));
    if (is_collective(record.kind)) {
        collective(rank, event);
        return;
    }
    switch (record.kind) {
    case TRACE_SEND:
    case TRACE_SSEND:
    case TRACE_BSEND:
        finish(rank, begin_send(rank, record), true);
        break;
    case TRACE_RECV:
    case TRACE_MRECV:
        finish(rank, begin_receive(rank, record), false);
        break;
    case TRACE_SENDRECV:
        send_and_receive(rank, record);
        break;
    case TRACE_OTHER:
        messages_.compute(rank, event.call_ns); // what it did is not the network's
        break;
    case TRACE_COMMUNICATOR:
    case TRACE_PHASE:
    case TRACE_PROBE:
    case TRACE_CANCEL:
        break;
    default:
        take_request(rank, record);
    }
}

void Records::refuse_kind(uint32_t rank, uint8_t kind) const {
    trace_.stream(rank).fail("of kind " + std::to_string(kind) + ", which there is not");
}

void Records::take_request(uint32_t rank, const trace_record &record) {
    switch (record.kind) {
    case TRACE_ISEND:
    case TRACE_ISSEND:
    case TRACE_IBSEND:
        begin_request(rank, request(rank, record.request), Request::SEND, record);
        break;
    case TRACE_IRECV:
    case TRACE_IMRECV:
        begin_request(rank, request(rank, record.request), Request::RECEIVE, record);
        break;
    case TRACE_SEND_INIT:
    case TRACE_SSEND_INIT:
    case TRACE_BSEND_INIT:
        make_request(rank, record, Request::SEND);
        break;
    case TRACE_RECV_INIT:
        make_request(rank, record, Request::RECEIVE);
        break;
    case TRACE_START:
        start_request(rank, record.request);
        break;
    case TRACE_WAIT:
    case TRACE_WAIT_SOME:
    case TRACE_TEST:
        end_request(rank, record.request);
        break;
    case TRACE_FREE:
        free_request(rank, record.request);
        break;
    default:
        refuse_kind(rank, record.kind);
    }
}

void Records::send_and_receive(uint32_t rank, const trace_record &record) {
    Event part;
    if (!trace_.stream(rank).next(part))
        return; // it died within
    if (part.record.kind != TRACE_RECV_PART)
        trace_.stream(rank).fail("what is received is missing");
    const uint32_t received = begin_receive(rank, part.record);
    const uint32_t sent = begin_send(rank, record);
    finish(rank, received, false);
    if (sent != NO_SLOT)
        states_[rank].open.push_back({sent, true});
    states_[rank].waits = true;
}

} // namespace wulf
