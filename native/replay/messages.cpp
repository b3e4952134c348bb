#include "replay/messages.hpp"

#include <algorithm>

namespace wulf {

namespace {

// What an evaluation needs of each step: the step, what was chosen there, and its share of a run.
constexpr double BYTES_PER_STEP = sizeof(Step) + sizeof(uint16_t) + sizeof(Run) / 2.0;

[[noreturn]] void refuse(const char *how_much, double needed, double available) {
    throw InputError("the trace needs " + std::string(how_much) + said_bytes(needed) + " of memory, " +
                     said_bytes(available) + " are there: trace fewer iterations of the program");
}

double bytes_per_step(bool keeps_records) { return BYTES_PER_STEP + (keeps_records ? sizeof(uint32_t) : 0); }

// Steps of the whole trace, as those of the part that was read are.
double all_steps(const Plan &plan, const Progress &progress) {
    const double done =
        static_cast<double>(progress.records) / static_cast<double>(std::max<uint64_t>(progress.of, 1));
    return static_cast<double>(plan.steps.size()) / std::clamp(done, 1e-9, 1.0);
}

} // namespace

void require_least_memory(const Trace &trace) {
    const double needed = BYTES_PER_STEP * static_cast<double>(trace.messages());
    const auto available = static_cast<double>(available_bytes());
    if (needed > available)
        refuse("at least ", needed, available);
}

Messages::Messages(Plan &plan, const PlanOptions &options, const Trace &trace, Turns &turns,
                   const Progress &progress)
    : plan_(plan), options_(options), trace_(trace), least_eager_(std::ranges::min(options.surely_eager)),
      turns_(turns), progress_(progress), sizes_(plan.sizes), matcher_(messages_), owns_(plan.ranks) {}

// --- steps ------------------------------------------------------------------------------------------------

void Messages::grow() {
    constexpr uint64_t most = UINT32_MAX; // steps have numbers of 32 bits
    const uint64_t before = plan_.steps.size();
    if (before == most)
        throw InputError("more than " + std::to_string(most) +
                         " steps: trace fewer iterations of the program");
    const uint64_t more = std::min(before / 2 + 65536, most - before);
    const double to_come = all_steps(plan_, progress_) - static_cast<double>(before);
    const double needed =
        bytes_per_step(options_.keeps_records) * std::min(to_come, static_cast<double>(more));
    if (needed > static_cast<double>(available_bytes()))
        refuse_size();
    plan_.steps.reserve(before + more);
    if (options_.keeps_records)
        plan_.record_of.reserve(before + more);
}

void Messages::refuse_size() const {
    const double each = bytes_per_step(options_.keeps_records);
    const double needed = each * all_steps(plan_, progress_);
    const double there =
        each * static_cast<double>(plan_.steps.size()) + static_cast<double>(available_bytes());
    // Arrays that grow are twice in memory for a while.
    refuse(needed > there ? "about " : "more than ", std::max(needed, there), there);
}

void Messages::begin_run(uint32_t rank) {
    const auto number = static_cast<uint32_t>(plan_.steps.size());
    if (!plan_.runs.empty())
        plan_.runs.back().end = number;
    plan_.runs.push_back({rank, number});
    rank_ = rank;
}

void Messages::refuse_compute(uint32_t rank) const {
    throw InputError("rank " + std::to_string(rank) + ": " + std::to_string(owns_[rank].compute_ns) +
                     " ns between two messages: no program computes that long");
}

void Messages::refuse_long(const Message &message) const {
    throw InputError("a message of " + std::to_string(plan_.sizes[message.size].bytes) + " B from rank " +
                     std::to_string(message.envelope.source) + " to rank " +
                     std::to_string(message.envelope.destination) + " is longer than its receive");
}

void Messages::reduce(uint32_t rank, uint64_t bytes) {
    if (bytes > Step::MOST_AMOUNT)
        throw InputError("rank " + std::to_string(rank) + " adds up " + std::to_string(bytes) +
                         " B at a time");
    append_compute(rank);
    append(rank, Step::of_amount(REDUCE, owns_[rank].call, bytes));
    plan_.computations++;
}

// Two that send to each other first are connected at once if they come at the same time: neither waits for
// the other's attention. Where the first that a program does is to make a communicator with neighbours they
// do not: each loads that part of its library before, and takes some milliseconds more or less for it.
void Messages::connect(uint32_t rank, uint32_t peer) {
    auto &own = owns_[rank], &other = owns_[peer];
    own.is_connected = true;
    const bool comes_late = own.call == TRACE_MAKE_COMMUNICATOR && trace_.begins_with_neighbours(rank);
    if (other.connects_to == rank) {
        if (comes_late)
            return;
        plan_.steps[other.connecting] = Step::of_amount(COMPUTE, plan_.steps[other.connecting].call(), 0);
        other.connects_to = NO_RANK;
        return;
    }
    work(rank, Mode::CONNECTING);
    own.connects_to = peer;
    own.connecting = static_cast<uint32_t>(plan_.steps.size() - 1);
}

// Nobody receives it: all have one slot, which is never free.
void Messages::work(uint32_t rank, Mode mode) {
    if (own_slot_ == NO_SLOT) {
        own_slot_ = static_cast<uint32_t>(messages_.size());
        messages_.emplace_back();
    }
    append_compute(rank);
    const uint32_t size = sizes_.number({0, mode, WITHIN_NODE});
    append(rank, Step::of_message(SEND, owns_[rank].call, size, own_slot_, true, false));
}

void Messages::finish() {
    for (uint32_t rank = 0; rank < owns_.size(); rank++)
        append_compute(rank);
    if (!plan_.runs.empty())
        plan_.runs.back().end = static_cast<uint32_t>(plan_.steps.size());
    plan_.slots = static_cast<uint32_t>(messages_.size());
    matcher_.each([this](uint32_t slot) {
        if (messages_[slot].is_message)
            lose(messages_[slot]);
    });
}

void Messages::lose(const Message &message) {
    const auto &[context, source, destination, tag] = message.envelope;
    if (message.freed) // its sender had nobody to wait for
        plan_.buffered--;
    if (is_of_collective(context))
        plan_.unfinished.push_back("rank " + std::to_string(source) + ": a collective that rank " +
                                   std::to_string(destination) + " does not take part in, or calls another");
    else if (plan_.lost++ == 0) {
        plan_.lost_from = source;
        plan_.lost_to = destination;
    }
}

// --- messages ---------------------------------------------------------------------------------------------

void Messages::forget(uint32_t slot) {
    messages_[slot].gone = true;
    release_if_over(slot);
}

bool Messages::buffer(uint32_t slot) {
    auto &message = messages_[slot];
    Size size = plan_.sizes[message.size];
    if (size.mode != Mode::STANDARD)
        return false;
    plan_.buffered++;
    plan_.largest_buffered = std::max(plan_.largest_buffered, size.bytes);
    size.mode = Mode::BUFFERED;
    message.size = sizes_.number(size);
    message.mutual = false;
    message.freed = true;
    const Step old = plan_.steps[message.send];
    plan_.steps[message.send] = Step::of_message(SEND, old.call(), message.size, slot, message.within, false);
    return true;
}

} // namespace wulf
