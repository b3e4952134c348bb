#include "replay/plan.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_map>

#include "replay/match.hpp"

namespace wulf {

namespace {

constexpr uint32_t NOBODY_WAITS = UINT32_MAX;
constexpr uint64_t UNKNOWN_BYTES = UINT64_MAX;
// A rank does so many things, then it is the next one's turn: a sender must not run ahead of its receivers
// for ever.
constexpr int TURN = 64;

// A message between its first step and its last.
struct Message {
    uint32_t source = 0, size = 0;
    uint32_t send = NO_STEP, post = NO_STEP, transfer = NO_STEP;
    uint32_t waiter = NOBODY_WAITS; // the rank that cannot go on without what is missing
    bool sent = false, posted = false;
    bool received = false, gone = false;
    bool mutual = false; // on some network both must be ready
};

// What a rank waits for before it goes on.
struct Finish {
    uint32_t slot;
    bool is_send;
};

struct Envelopes {
    uint16_t comm;
    int32_t peer, tag;
};

struct Request {
    enum Kind : uint8_t { NONE, SEND, RECEIVE, COLLECTIVE } kind = NONE;
    bool is_persistent = false, is_active = false;
    uint32_t slot = NO_SLOT;
    trace_record record{}; // as it was begun
    uint32_t sequence = 0; // of a collective
    std::vector<uint64_t> sizes;
};

struct RankState {
    std::vector<Move> moves; // of the collective that it is in
    size_t next_move = 0;
    std::vector<Finish> finish, begun;
    size_t next_finish = 0;
    Envelope collective{}; // of these moves; peers are put in
    const Communicator *members = nullptr;
    std::vector<Request> requests;
    std::vector<uint32_t> sequences; // collectives so far, by communicator
    std::deque<Envelopes> wild;      // what receives from anybody got, in the order in which they were begun
    uint64_t compute_ns = 0;         // not yet in a step
    uint32_t last = NO_STEP, last_out = NO_STEP, last_in = NO_STEP;
    trace_kind call = TRACE_OTHER;
    bool is_ready = false, is_done = false;
    uint32_t waits_for = NO_SLOT;
};

bool has_root(trace_kind kind) {
    return kind == TRACE_BCAST || kind == TRACE_GATHER || kind == TRACE_GATHERV || kind == TRACE_SCATTER ||
           kind == TRACE_SCATTERV || kind == TRACE_REDUCE;
}

// Collectives of which a rank does not know how much others send to it.
bool has_unknown_parts(trace_kind kind) {
    return kind == TRACE_GATHERV || kind == TRACE_ALLTOALLV || kind == TRACE_ALLTOALLW ||
           kind == TRACE_NEIGHBOR_ALLGATHERV || kind == TRACE_NEIGHBOR_ALLTOALLV ||
           kind == TRACE_NEIGHBOR_ALLTOALLW;
}

bool is_neighbourhood(trace_kind kind) {
    return kind >= TRACE_NEIGHBOR_ALLGATHER && kind <= TRACE_NEIGHBOR_ALLTOALLW;
}

bool is_collective(uint8_t kind) { return kind >= TRACE_BARRIER && kind <= TRACE_MAKE_COMMUNICATOR; }

bool is_completion(uint8_t kind) {
    return kind == TRACE_WAIT || kind == TRACE_WAIT_SOME || kind == TRACE_TEST;
}

// Of receives from anybody: who sent what they got, which is known when they end.
std::deque<Envelopes> resolve(Stream &stream) {
    std::deque<Envelopes> found;
    std::unordered_map<uint32_t, size_t> open; // request → which of them
    std::unordered_map<uint32_t, bool> persistent;
    stream.rewind();
    for (Event event; stream.next(event);) {
        const auto &record = event.record;
        const bool is_wild = (record.flags & TRACE_WILD) != 0;
        if (record.kind == TRACE_RECV_INIT && is_wild)
            persistent[record.request] = true;
        if (record.kind == TRACE_FREE)
            persistent.erase(record.request);
        if ((record.kind == TRACE_IRECV && is_wild) ||
            (record.kind == TRACE_START && persistent.contains(record.request))) {
            open[record.request] = found.size();
            found.push_back({record.comm, TRACE_ANY, TRACE_ANY});
        } else if (is_completion(record.kind)) {
            const auto begun = open.find(record.request);
            if (begun != open.end()) {
                found[begun->second] = {record.comm, record.peer, record.tag};
                open.erase(begun);
            }
        }
    }
    stream.rewind();
    return found;
}

class Planner {
  public:
    Planner(Trace &trace, const PlanOptions &options)
        : trace_(trace), options_(options), matcher_(next_), states_(trace.ranks()) {}

    Plan plan() {
        require_sound();
        plan_.ranks = static_cast<uint32_t>(trace_.ranks());
        const uint64_t expected = std::min<uint64_t>(trace_.slots() + trace_.slots() / 4, 1U << 28);
        plan_.steps.reserve(expected);
        plan_.origins.reserve(expected);
        for (uint32_t rank = 0; rank < plan_.ranks; rank++) {
            states_[rank].wild = resolve(trace_.stream(rank));
            wake(rank);
        }
        while (run() && free_a_sender()) {
        }
        for (uint32_t rank = 0; rank < plan_.ranks; rank++) {
            if (states_[rank].compute_ns > 0)
                emit(COMPUTE, rank, 0, 0);
            describe(rank);
        }
        plan_.slots = static_cast<uint32_t>(messages_.size());
        return std::move(plan_);
    }

  private:
    void require_sound() {
        if (trace_.ranks() >= Step::MOST_RANKS)
            throw InputError("more ranks than can be replayed");
        if (!options_.nodes.empty() && options_.nodes.size() != trace_.ranks())
            throw InputError("the ranks of the trace are " + std::to_string(trace_.ranks()) +
                             ", nodes are given for " + std::to_string(options_.nodes.size()));
        static const std::pair<trace_unsound, const char *> reasons[] = {
            {TRACE_THREADS, "threads that call MPI at the same time"},
            {TRACE_ONE_SIDED, "one-sided communication"},
            {TRACE_PROCESSES, "processes that are started or joined"},
            {TRACE_INTER, "communication between two groups"},
            {TRACE_CANCELLED, "requests that are cancelled"},
            {TRACE_PASSED, "calls that the tracer does not know"},
        };
        for (size_t rank = 0; rank < trace_.ranks(); rank++) {
            if (trace_.stream(rank).header().lost > 0)
                throw InputError("rank " + std::to_string(rank) + ": " +
                                 std::to_string(trace_.stream(rank).header().lost) +
                                 " calls are missing, as its stream was full: allow it to be larger");
            for (const auto &[which, words] : reasons)
                if (trace_.stream(rank).header().unsound >> which & 1)
                    throw InputError("rank " + std::to_string(rank) + " uses " + words +
                                     ": what that would take on another network cannot be said from a trace");
        }
    }

    // --- steps
    // ------------------------------------------------------------------------------------------------

    uint32_t append(const Step &step, const Origins &origins) {
        if (plan_.steps.size() == NO_STEP)
            throw InputError("more than " + std::to_string(NO_STEP) + " steps: trace a part of the program");
        plan_.steps.push_back(step);
        plan_.origins.push_back(origins);
        return static_cast<uint32_t>(plan_.steps.size() - 1);
    }

    // A step of a rank's own time.
    uint32_t emit(StepKind kind, uint32_t rank, uint32_t slot, uint32_t size, uint32_t other = NO_STEP,
                  uint32_t interface = NO_STEP) {
        auto &state = states_[rank];
        constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
        for (; state.compute_ns > most; state.compute_ns -= most)
            state.last = append({Step::packed(COMPUTE, state.call, rank), 0, 0, static_cast<uint32_t>(most)},
                                {.before = state.last});
        const Step step{Step::packed(kind, state.call, rank), slot, size,
                        static_cast<uint32_t>(state.compute_ns)};
        state.compute_ns = 0;
        return state.last = append(step, {.before = state.last, .other = other, .interface = interface});
    }

    uint32_t size_of(uint64_t bytes, Mode mode, uint32_t source, uint32_t destination) {
        const auto &nodes = options_.nodes;
        const auto locality =
            !nodes.empty() && nodes[source] == nodes[destination] ? WITHIN_NODE : BETWEEN_NODES;
        if (bytes >> 58)
            throw InputError("a message of " + std::to_string(bytes) + " B");
        const uint64_t key = bytes << 3 | uint64_t{static_cast<uint8_t>(mode)} << 1 | locality;
        if (key == last_key_)
            return last_size_;
        const auto [found, is_new] =
            size_numbers_.try_emplace(key, static_cast<uint32_t>(plan_.sizes.size()));
        if (is_new)
            plan_.sizes.push_back({bytes, mode, locality});
        last_key_ = key;
        return last_size_ = found->second;
    }

    // --- messages
    // ---------------------------------------------------------------------------------------------

    uint32_t take_slot() {
        if (free_.empty()) {
            messages_.emplace_back();
            next_.push_back(NO_SLOT);
            return static_cast<uint32_t>(messages_.size() - 1);
        }
        const uint32_t slot = free_.back();
        free_.pop_back();
        messages_[slot] = {};
        return slot;
    }

    // Whether it goes through the interfaces.
    bool is_between(const Message &message) const {
        return plan_.sizes[message.size].locality == BETWEEN_NODES;
    }

    void release_if_over(uint32_t slot) {
        if (messages_[slot].received && messages_[slot].gone)
            free_.push_back(slot);
    }

    void wake(uint32_t rank) {
        if (rank == NOBODY_WAITS || states_[rank].is_ready || states_[rank].is_done)
            return;
        states_[rank].is_ready = true;
        ready_.push_back(rank);
    }

    void wake_waiter(Message &message) {
        wake(message.waiter);
        message.waiter = NOBODY_WAITS;
    }

    // Return its slot, or NO_SLOT where the sender has nothing to wait for.
    uint32_t send(const Envelope &envelope, uint64_t bytes, Mode mode) {
        plan_.operations++;
        uint32_t slot = take_slot();
        const uint32_t receive = matcher_.send(envelope, slot);
        if (receive != NO_SLOT) {
            free_.push_back(slot);
            slot = receive;
        }
        auto &state = states_[envelope.source];
        auto &message = messages_[slot];
        message.source = envelope.source;
        message.size = size_of(bytes, mode, envelope.source, envelope.destination);
        message.mutual =
            mode == Mode::SYNCHRONOUS || (mode == Mode::STANDARD && bytes > options_.surely_eager);
        message.gone = !message.mutual;
        message.send = emit(SEND, envelope.source, slot, message.size, NO_STEP, state.last_out);
        if (is_between(message))
            state.last_out = message.send;
        message.sent = true;
        wake_waiter(message);
        return message.mutual ? slot : NO_SLOT;
    }

    uint32_t post(const Envelope &envelope, uint64_t most_bytes) {
        plan_.operations++;
        uint32_t slot = take_slot();
        const uint32_t sent = matcher_.receive(envelope, slot);
        if (sent != NO_SLOT) {
            free_.push_back(slot);
            slot = sent;
        }
        auto &message = messages_[slot];
        if (message.sent ? message.mutual : most_bytes > options_.surely_eager)
            message.post = emit(POST, envelope.destination, slot, 0);
        message.posted = true;
        wake_waiter(message);
        return slot;
    }

    // The message goes, where it had to wait for both.
    void transfer(uint32_t slot) {
        auto &message = messages_[slot];
        if (!message.mutual || message.transfer != NO_STEP)
            return;
        auto &state = states_[message.source];
        message.transfer =
            append({Step::packed(TRANSFER, state.call, message.source), slot, message.size, 0},
                   {.before = message.post, .other = message.send, .interface = state.last_out});
        if (is_between(message))
            state.last_out = message.transfer;
    }

    // False as long as what it waits for has not happened.
    bool end(uint32_t rank, const Finish &finish) {
        auto &message = messages_[finish.slot];
        auto &state = states_[rank];
        if (finish.is_send ? message.mutual && !message.posted : !message.sent) {
            message.waiter = rank;
            state.waits_for = finish.slot;
            return false;
        }
        state.waits_for = NO_SLOT;
        transfer(finish.slot);
        if (finish.is_send) {
            if (message.mutual)
                emit(SENT, rank, finish.slot, message.size, message.transfer);
            message.gone = true;
        } else {
            const uint32_t from = message.transfer != NO_STEP ? message.transfer : message.send;
            const uint32_t received = emit(RECEIVE, rank, finish.slot, message.size, from, state.last_in);
            if (is_between(message))
                state.last_in = received;
            message.received = true;
        }
        release_if_over(finish.slot);
        return true;
    }

    // --- ranks
    // ------------------------------------------------------------------------------------------------

    // Until nobody can go on. False when all have come to their end.
    bool run() {
        while (!ready_.empty()) {
            const uint32_t rank = ready_.front();
            ready_.pop_front();
            states_[rank].is_ready = false;
            if (turn(rank))
                wake(rank);
        }
        return std::any_of(states_.begin(), states_.end(),
                           [](const RankState &state) { return !state.is_done; });
    }

    // False when the rank cannot go on.
    bool turn(uint32_t rank) {
        auto &state = states_[rank];
        for (int done = 0; done < TURN; done++) {
            for (; state.next_finish < state.finish.size(); state.next_finish++)
                if (!end(rank, state.finish[state.next_finish]))
                    return false;
            state.finish.clear();
            state.next_finish = 0;
            if (state.next_move < state.moves.size()) {
                move(rank, state.moves[state.next_move++]);
                continue;
            }
            Event event;
            if (!trace_.stream(rank).next(event)) {
                state.is_done = true;
                return false;
            }
            take(rank, event);
        }
        return true;
    }

    void move(uint32_t rank, const Move &move) {
        auto &state = states_[rank];
        if (move.kind == Move::WAIT) {
            state.finish.swap(state.begun);
            state.begun.clear();
            return;
        }
        if (move.kind == Move::REDUCE) {
            constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
            for (uint64_t left = move.bytes; left > 0; left -= std::min(left, most))
                emit(REDUCE, rank, static_cast<uint32_t>(std::min(left, most)), 0);
            return;
        }
        const bool is_send = move.kind == Move::SEND || move.kind == Move::BEGIN_SEND;
        const auto peer = static_cast<uint32_t>(state.members->members[static_cast<size_t>(move.peer)]);
        Envelope envelope = state.collective;
        envelope.source = is_send ? rank : peer;
        envelope.destination = is_send ? peer : rank;
        const uint64_t most = has_unknown_parts(state.call) ? UNKNOWN_BYTES : move.bytes;
        const uint32_t slot = is_send ? send(envelope, move.bytes, Mode::STANDARD) : post(envelope, most);
        if (slot != NO_SLOT)
            (move.kind == Move::SEND || move.kind == Move::RECEIVE ? state.finish : state.begun)
                .push_back({slot, is_send});
    }

    // --- records
    // ----------------------------------------------------------------------------------------------

    uint32_t world_rank(uint32_t rank, const trace_record &record, int32_t peer) {
        const auto &members = trace_.communicators()[trace_.local(rank, record.comm).global].members;
        if (peer < 0 || static_cast<size_t>(peer) >= members.size())
            trace_.stream(rank).fail("rank " + std::to_string(peer) + " of a communicator of " +
                                     std::to_string(members.size()));
        return static_cast<uint32_t>(members[static_cast<size_t>(peer)]);
    }

    Envelope envelope(uint32_t rank, const trace_record &record, int32_t peer, int32_t tag, bool is_send) {
        const uint32_t other = world_rank(rank, record, peer);
        return {.context = trace_.local(rank, record.comm).global * 2,
                .source = is_send ? rank : other,
                .destination = is_send ? other : rank,
                .tag = tag};
    }

    static Mode mode_of(uint8_t kind) {
        switch (kind) {
        case TRACE_SSEND:
        case TRACE_ISSEND:
        case TRACE_SSEND_INIT:
            return Mode::SYNCHRONOUS;
        case TRACE_BSEND:
        case TRACE_IBSEND:
        case TRACE_BSEND_INIT:
            return Mode::BUFFERED;
        default:
            return Mode::STANDARD;
        }
    }

    // NO_SLOT where there is nothing to wait for.
    uint32_t begin_send(uint32_t rank, const trace_record &record) {
        if (record.peer == TRACE_NOBODY)
            return NO_SLOT;
        return send(envelope(rank, record, record.peer, record.tag, true), record.bytes,
                    mode_of(record.kind));
    }

    uint32_t begin_receive(uint32_t rank, const trace_record &record) {
        int32_t peer = record.peer, tag = record.tag;
        auto &state = states_[rank];
        const bool ends_later = record.kind == TRACE_IRECV || record.kind == TRACE_RECV_INIT;
        if ((record.flags & TRACE_WILD) && ends_later) {
            if (state.wild.empty())
                trace_.stream(rank).fail("a receive from anybody that was not counted");
            peer = state.wild.front().peer;
            tag = state.wild.front().tag;
            state.wild.pop_front();
        }
        if (peer == TRACE_NOBODY || peer == TRACE_ANY)
            return NO_SLOT; // of one from anybody: it never ended
        return post(envelope(rank, record, peer, tag, false), record.bytes);
    }

    void finish(uint32_t rank, uint32_t slot, bool is_send) {
        if (slot != NO_SLOT)
            states_[rank].finish.push_back({slot, is_send});
    }

    Request &request(uint32_t rank, uint32_t number) {
        auto &requests = states_[rank].requests;
        // Numbers are used again, so there are no more than records; a damaged one must not ask for memory.
        constexpr uint64_t usual = 1024;
        const uint64_t most = std::max(usual, trace_.stream(rank).header().slots + 1);
        if (number == 0 || number >= most)
            trace_.stream(rank).fail("request " + std::to_string(number));
        if (number >= requests.size())
            requests.resize(number + 1);
        return requests[number];
    }

    void begin_request(uint32_t rank, Request &request, Request::Kind kind, const trace_record &record) {
        request.kind = kind;
        request.record = record;
        request.is_active = true;
        request.slot = kind == Request::SEND ? begin_send(rank, record) : begin_receive(rank, record);
    }

    void end_request(uint32_t rank, uint32_t number) {
        auto &ended = request(rank, number);
        if (!ended.is_active)
            return; // a persistent one that was not started, or one that was waited for before
        ended.is_active = false;
        if (ended.kind == Request::COLLECTIVE)
            enter(rank, ended.record, ended.sequence, std::move(ended.sizes));
        else
            finish(rank, ended.slot, ended.kind == Request::SEND);
    }

    // A message that nobody waits for goes all the same.
    void free_request(uint32_t rank, uint32_t number) {
        auto &freed = request(rank, number);
        if (freed.is_active && freed.kind == Request::SEND && freed.slot != NO_SLOT) {
            messages_[freed.slot].gone = true;
            release_if_over(freed.slot);
        }
        freed = {};
    }

    void collective(uint32_t rank, const Event &event) {
        auto &state = states_[rank];
        const auto &record = event.record;
        const auto &local = trace_.local(rank, record.comm);
        if (has_root(static_cast<trace_kind>(record.kind)))
            world_rank(rank, record, record.peer);
        if (record.comm >= state.sequences.size())
            state.sequences.resize(size_t{record.comm} + 1);
        const uint32_t sequence = state.sequences[record.comm]++;
        std::vector<uint64_t> sizes(event.sizes());
        for (size_t place = 0; place < sizes.size(); place++)
            sizes[place] = event.size_at(place);
        const auto kind = static_cast<trace_kind>(record.kind);
        const size_t wanted = is_neighbourhood(kind) ? local.targets.size()
                                                     : trace_.communicators()[local.global].members.size();
        if (!sizes.empty() && sizes.size() != wanted)
            trace_.stream(rank).fail(std::to_string(sizes.size()) + " sizes for " + std::to_string(wanted) +
                                     " ranks");
        if (!(record.flags & TRACE_NONBLOCKING)) {
            enter(rank, record, sequence, std::move(sizes));
            return;
        }
        auto &begun = request(rank, record.request);
        begun = {};
        begun.kind = Request::COLLECTIVE;
        begun.is_active = true;
        begun.record = record;
        begun.sequence = sequence;
        begun.sizes = std::move(sizes);
    }

    void enter(uint32_t rank, const trace_record &record, uint32_t sequence, std::vector<uint64_t> sizes) {
        auto &state = states_[rank];
        const auto &local = trace_.local(rank, record.comm);
        const auto kind = static_cast<trace_kind>(record.kind);
        state.call = kind;
        state.members = &trace_.communicators()[local.global];
        state.collective = {.context = local.global * 2 + 1,
                            .source = 0,
                            .destination = 0,
                            .tag = static_cast<int32_t>(sequence)};
        state.moves.clear();
        state.next_move = 0;
        CollectiveCall call{.kind = kind,
                            .rank = local.rank,
                            .ranks = static_cast<int32_t>(state.members->members.size()),
                            .root = has_root(kind) ? record.peer : TRACE_NOBODY,
                            .bytes = record.bytes,
                            .sizes = std::move(sizes)};
        if (is_neighbourhood(kind)) {
            call.sources = &local.sources;
            call.targets = &local.targets;
        }
        expand(call, options_.rules, state.moves);
    }

    void take(uint32_t rank, const Event &event) {
        auto &state = states_[rank];
        const auto &record = event.record;
        state.compute_ns += event.compute_ns;
        state.call = static_cast<trace_kind>(record.kind);
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
        case TRACE_ISEND:
        case TRACE_ISSEND:
        case TRACE_IBSEND:
            begin_request(rank, request(rank, record.request), Request::SEND, record);
            break;
        case TRACE_IRECV:
        case TRACE_IMRECV:
            begin_request(rank, request(rank, record.request), Request::RECEIVE, record);
            break;
        case TRACE_SENDRECV: {
            Event part;
            if (!trace_.stream(rank).next(part))
                break; // it died within
            if (part.record.kind != TRACE_RECV_PART)
                trace_.stream(rank).fail("what is received is missing");
            const uint32_t received = begin_receive(rank, part.record);
            const uint32_t sent = begin_send(rank, record);
            finish(rank, received, false);
            finish(rank, sent, true);
            break;
        }
        case TRACE_SEND_INIT:
        case TRACE_SSEND_INIT:
        case TRACE_BSEND_INIT:
        case TRACE_RECV_INIT: {
            auto &made = request(rank, record.request);
            made = {};
            made.kind = record.kind == TRACE_RECV_INIT ? Request::RECEIVE : Request::SEND;
            made.is_persistent = true;
            made.record = record;
            break;
        }
        case TRACE_START: {
            auto &started = request(rank, record.request);
            if (!started.is_persistent || started.is_active)
                trace_.stream(rank).fail("the start of a request that was not made for it, or runs");
            begin_request(rank, started, started.kind, started.record);
            break;
        }
        case TRACE_WAIT:
        case TRACE_WAIT_SOME:
        case TRACE_TEST:
            end_request(rank, record.request);
            break;
        case TRACE_FREE:
            free_request(rank, record.request);
            break;
        case TRACE_OTHER:
            state.compute_ns += event.call_ns; // what it did is not the network's
            break;
        case TRACE_COMMUNICATOR:
        case TRACE_PHASE:
        case TRACE_PROBE:
        case TRACE_CANCEL:
            break;
        default:
            trace_.stream(rank).fail("of kind " + std::to_string(record.kind) + ", which there is not");
        }
    }

    // --- what does not end
    // -------------------------------------------------------------------------------------

    // All wait for each other, and one of them to send: only a buffer lets the program go on. False when that
    // is not what is wrong. One at a time: it may free all others.
    bool free_a_sender() {
        for (uint32_t rank = 0; rank < plan_.ranks; rank++) {
            const auto &state = states_[rank];
            if (state.is_done || state.waits_for == NO_SLOT || !state.finish[state.next_finish].is_send)
                continue;
            auto &message = messages_[state.waits_for];
            const Size old = plan_.sizes[message.size];
            if (old.mode != Mode::STANDARD)
                continue;
            plan_.buffered++;
            plan_.largest_buffered = std::max(plan_.largest_buffered, old.bytes);
            message.size = buffered(old);
            message.mutual = false;
            plan_.steps[message.send].size = message.size;
            wake(rank);
            return true;
        }
        return false;
    }

    uint32_t buffered(const Size &old) {
        const uint64_t key =
            old.bytes << 3 | uint64_t{static_cast<uint8_t>(Mode::BUFFERED)} << 1 | old.locality;
        const auto [place, is_new] =
            size_numbers_.try_emplace(key, static_cast<uint32_t>(plan_.sizes.size()));
        if (is_new)
            plan_.sizes.push_back({old.bytes, Mode::BUFFERED, old.locality});
        return place->second;
    }

    void describe(uint32_t rank) {
        const auto &state = states_[rank];
        if (state.is_done)
            return;
        const auto &stream = trace_.stream(rank);
        const bool sends = state.finish[state.next_finish].is_send;
        plan_.unfinished.push_back(
            "rank " + std::to_string(rank) + ", record " + std::to_string(stream.place()) +
            (sends ? ": a message that nobody receives" : ": a message that nobody sends"));
    }

    Trace &trace_;
    const PlanOptions &options_;
    Plan plan_;
    std::vector<uint32_t> next_; // of each slot, for the matcher
    Matcher matcher_;
    std::vector<Message> messages_;
    std::vector<uint32_t> free_;
    std::vector<RankState> states_;
    std::deque<uint32_t> ready_;
    std::unordered_map<uint64_t, uint32_t> size_numbers_;
    uint64_t last_key_ = UINT64_MAX;
    uint32_t last_size_ = 0;
};

} // namespace

Plan plan(Trace &trace, const PlanOptions &options) { return Planner(trace, options).plan(); }

} // namespace wulf
