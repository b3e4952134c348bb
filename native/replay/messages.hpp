// Messages of a plan while it is made: which belongs to which receive, and the steps of both.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/match.hpp"
#include "replay/plan.hpp"
#include "replay/sizes.hpp"
#include "replay/turns.hpp"

namespace wulf {

// A message, or a receive, that a rank waits for before it goes on.
struct Finish {
    uint32_t slot;
    bool is_send;
};

// How far the trace has been read: what is still to come will need as much memory as what has been.
struct Progress {
    uint64_t records = 0, of = 0;
};

// Throws InputError where the messages that the trace itself has, without those of collectives, need more
// memory than there is.
void require_least_memory(const Trace &trace);

class Messages {
  public:
    // `turns`: where a rank is put when what it waited for has come.
    Messages(Plan &plan, const PlanOptions &options, const Trace &trace, Turns &turns,
             const Progress &progress);

    // The rank computes before its next step [ns]. Its steps belong to `call` from now on.
    void compute(uint32_t rank, uint64_t time_ns) { owns_[rank].compute_ns += time_ns; }
    void called(uint32_t rank, trace_kind call) { owns_[rank].call = call; }
    // The rank adds up so many bytes.
    void reduce(uint32_t rank, uint64_t bytes);
    // The rank does what no message carries.
    void work(uint32_t rank, Mode mode);

    // Return the message's slot, or NO_SLOT where the sender has nothing to wait for.
    uint32_t send(const Envelope &envelope, uint64_t bytes, Mode mode);
    // Return its slot. The message may have as many bytes as are given, or less.
    uint32_t post(const Envelope &envelope, uint64_t most_bytes);
    // False as long as what is waited for has not happened; the rank is woken when it does.
    bool end(uint32_t rank, const Finish &finish);
    // Nobody waits for the message of a slot that `send` has given; it goes all the same.
    void forget(uint32_t slot);
    // Let the message of a slot that `send` has given go at once. False where it must not.
    bool buffer(uint32_t slot);
    // Write down what the ranks compute behind their last messages, and what has come to nobody.
    void finish();
    // Who has to do something before what is waited for can happen.
    [[nodiscard]] uint32_t other_of(const Finish &finish) const {
        const Envelope &envelope = messages_[finish.slot].envelope;
        return finish.is_send ? envelope.destination : envelope.source;
    }
    // The memory is not enough: say for how much.
    [[noreturn]] void refuse_size() const;

  private:
    // A message between its first step and its last.
    struct Message : Queued {
        bool sent : 1 = false, posted : 1 = false;
        bool received : 1 = false, gone : 1 = false;
        bool mutual : 1 = false; // on some network both must be ready
        bool transferred : 1 = false;
        bool within : 1 = false;   // a node
        bool answers : 1 = false;  // its receive has a step of its own
        bool answered : 1 = false; // it goes at once, and its sender waits for an answer
        bool freed : 1 = false;    // only a buffer lets it go
        uint32_t size = 0;
        uint32_t send = 0;         // its step
        uint32_t waiter = NO_RANK; // the rank that cannot go on without what is missing
    };
    // What is known of a rank between its steps.
    struct Own {
        uint64_t compute_ns = 0; // not yet in a step
        trace_kind call = TRACE_OTHER;
        bool is_connected = false;      // it has sent to another node, or received from one
        uint32_t connects_to = NO_RANK; // whom its first message went to, where it waits for a connection
        uint32_t connecting = 0;        // the step of that
    };

    uint32_t matched(const Envelope &envelope, bool is_message);
    void release_if_over(uint32_t slot);
    void lose(const Message &message);
    void wake_waiter(Message &message);
    // Append steps.
    void append(uint32_t rank, const Step &step) {
        if (rank != rank_)
            begin_run(rank);
        if (plan_.steps.is_full())
            grow();
        plan_.steps.push_back(step);
        if (options_.keeps_records)
            plan_.record_of.push_back(static_cast<uint32_t>(trace_.stream(rank).place()));
    }
    void append_message(StepKind kind, uint32_t rank, uint32_t slot);
    void append_compute(uint32_t rank);
    void connect(uint32_t rank, uint32_t peer);
    void append_transfer(uint32_t rank, uint32_t slot);
    void begin_run(uint32_t rank);
    void grow();
    [[noreturn]] void refuse_compute(uint32_t rank) const;
    [[noreturn]] void refuse_long(const Message &message) const;

    Plan &plan_;
    const PlanOptions &options_;
    const Trace &trace_;
    const uint64_t least_eager_; // of both localities: a receive does not know its message's
    Turns &turns_;
    const Progress &progress_;
    Sizes sizes_;
    std::vector<Message> messages_; // of each slot
    uint32_t first_free_ = NO_SLOT; // the free slots are a queue
    Matcher<Message> matcher_;
    std::vector<Own> owns_;       // of each rank
    uint32_t rank_ = NO_RANK;     // whose run it is
    uint32_t own_slot_ = NO_SLOT; // of what nobody receives
};

// What is done for every message is here, so that it becomes part of the loop over records.

inline void Messages::append_compute(uint32_t rank) {
    auto &own = owns_[rank];
    if (own.compute_ns == 0)
        return;
    if (own.compute_ns > Step::MOST_AMOUNT)
        refuse_compute(rank);
    append(rank, Step::of_amount(COMPUTE, own.call, own.compute_ns));
    plan_.computations++;
    own.compute_ns = 0;
}

inline void Messages::append_message(StepKind kind, uint32_t rank, uint32_t slot) {
    append_compute(rank);
    const auto &message = messages_[slot];
    append(rank,
           Step::of_message(kind, owns_[rank].call, message.size, slot, message.within, message.mutual));
}

// The slot of a message, or of a receive: that of its counterpart, or a new one, where it waits for that.
inline uint32_t Messages::matched(const Envelope &envelope, bool is_message) {
    if (first_free_ == NO_SLOT) {
        first_free_ = static_cast<uint32_t>(messages_.size());
        messages_.emplace_back();
    }
    const uint32_t slot = first_free_;
    auto &message = messages_[slot];
    const uint32_t next_free = message.next;
    message.envelope = envelope;
    message.is_message = is_message;
    if (const uint32_t other = matcher_.match(slot); other != NO_SLOT)
        return other;
    first_free_ = next_free;
    return slot;
}

inline void Messages::release_if_over(uint32_t slot) {
    auto &message = messages_[slot];
    if (!message.received || !message.gone)
        return;
    message = {};
    message.next = first_free_;
    first_free_ = slot;
}

inline void Messages::wake_waiter(Message &message) {
    if (message.waiter == NO_RANK)
        return;
    turns_.wake(message.waiter);
    message.waiter = NO_RANK;
}

inline uint32_t Messages::send(const Envelope &envelope, uint64_t bytes, Mode mode) {
    plan_.operations++;
    const auto &nodes = options_.nodes;
    const bool within = !nodes.empty() && nodes[envelope.source] == nodes[envelope.destination];
    if (!within && !owns_[envelope.source].is_connected)
        connect(envelope.source, envelope.destination);
    const uint32_t slot = matched(envelope, true);
    auto &message = messages_[slot];
    message.within = within;
    const auto locality = message.within ? WITHIN_NODE : BETWEEN_NODES;
    const bool is_eager = bytes <= options_.surely_eager[locality];
    message.answered = mode == Mode::SYNCHRONOUS && is_eager;
    message.size = sizes_.number({bytes, message.answered ? Mode::ANSWERED : mode, locality});
    message.mutual = mode != Mode::BUFFERED && !is_eager;
    message.gone = !message.mutual && !message.answered;
    message.sent = true;
    append_message(SEND, envelope.source, slot);
    message.send = static_cast<uint32_t>(plan_.steps.size() - 1);
    wake_waiter(message);
    return message.gone ? NO_SLOT : slot;
}

inline uint32_t Messages::post(const Envelope &envelope, uint64_t most_bytes) {
    plan_.operations++;
    const uint32_t slot = matched(envelope, false);
    auto &message = messages_[slot];
    // A message that is always sent by agreement may be small.
    if (message.sent ? message.mutual || message.answered
                     : trace_.has_synchronous() || most_bytes > least_eager_) {
        append_compute(envelope.destination);
        append(envelope.destination,
               Step::of_message(POST, owns_[envelope.destination].call, 0, slot, false, true));
        message.answers = true;
    }
    message.posted = true;
    wake_waiter(message);
    return slot;
}

// The message goes, where it had to wait for both; it is `rank` that sees to it.
inline void Messages::append_transfer(uint32_t rank, uint32_t slot) {
    auto &message = messages_[slot];
    if ((!message.mutual && !message.answered) || message.transferred)
        return;
    if (!message.answers)
        refuse_long(message);
    const uint32_t source = message.envelope.source;
    const trace_kind call = owns_[source].call;
    append(rank, message.answered ? Step::of_message(ANSWER, call, message.size, slot, message.within, false)
                                  : Step::of_transfer(call, source, slot));
    message.transferred = true;
    plan_.transfers++;
}

inline bool Messages::end(uint32_t rank, const Finish &finish) {
    auto &message = messages_[finish.slot];
    const bool is_waited_for = message.mutual || message.answered;
    if (finish.is_send ? is_waited_for && !message.posted : !message.sent) {
        message.waiter = rank;
        return false;
    }
    append_transfer(rank, finish.slot);
    if (finish.is_send) {
        if (is_waited_for)
            append_message(SENT, rank, finish.slot);
        message.gone = true;
    } else {
        append_message(RECEIVE, rank, finish.slot);
        message.received = true;
        owns_[rank].is_connected |= !message.within;
    }
    release_if_over(finish.slot);
    return true;
}

} // namespace wulf
