// Damaged traces: whatever the bytes are, the replay reads them or says what is wrong with them. Built with
// libFuzzer and the sanitizers (-DWULF_FUZZ=ON, with clang); see bench/fuzz_trace.py.
//
// The first bytes of a case are what is asked for (struct Asked), the rest is the trace. Most changes are
// made to records of a trace that is put together again, so that they come past what is looked at first.
#include <algorithm>
#include <cmath>
#include <random>

#include "replay/fuzz/editable.hpp"
#include "replay/maxplus.hpp"
#include "replay/tests/random_program.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

using namespace wulf;

namespace {

struct Asked {
    uint8_t eager, nodes, rules, more;
};

// Messages up to a size are surely eager, and two networks differ above it.
constexpr uint64_t EAGER[] = {0, 64, 4096, UINT64_MAX};

std::vector<Network> networks(const Asked &asked) {
    Random random(asked.more);
    std::vector<Network> found{random_network(random), random_network(random)};
    for (auto &network : found)
        for (auto &link : network.links)
            link.eager_bytes += EAGER[asked.eager % std::size(EAGER)] & UINT32_MAX;
    return found;
}

PlanOptions options(const Asked &asked, size_t ranks) {
    PlanOptions found;
    found.surely_eager.fill(EAGER[asked.eager % std::size(EAGER)] & UINT32_MAX);
    for (size_t rank = 0; asked.nodes % 2 == 1 && rank < ranks; rank++)
        found.nodes.push_back(static_cast<uint32_t>(rank / 2));
    for (int kind = TRACE_BARRIER; asked.rules > 0 && kind <= TRACE_MAKE_COMMUNICATOR; kind++) {
        const auto collective = static_cast<trace_kind>(kind);
        const auto &known = algorithms(collective);
        found.rules.add({collective, 0, 0, known[asked.rules % known.size()], asked.rules % 3U * 1024});
    }
    return found;
}

void require(bool holds) {
    if (!holds)
        __builtin_trap();
}

// What holds for any plan that could be made.
void evaluate(const Plan &plan, const std::vector<Network> &networks) {
    Evaluator evaluator(plan), narrow(plan, kernels().back());
    const auto times = evaluator.evaluate(networks), same = narrow.evaluate(networks);
    const auto paths = evaluator.paths(networks);
    for (size_t one = 0; one < networks.size(); one++) {
        require(std::isfinite(times[one].time_ns) && times[one].time_ns >= 0);
        require(times[one].time_ns == same[one].time_ns);
        const double sum = paths[one].time_ns(networks[one]);
        require(std::abs(sum - times[one].time_ns) <= 1e-6 * times[one].time_ns + 1e-3);
    }
}

// --- changes ----------------------------------------------------------------------------------------------

// A number that is worth trying.
template <typename Number> Number tried(Random &random) {
    static constexpr uint64_t numbers[] = {0,          1,          2,          3,          7,
                                           8,          63,         64,         1023,       4096,
                                           65536,      1U << 20,   1ULL << 31, UINT32_MAX, 1ULL << 32,
                                           1ULL << 42, 1ULL << 53, 1ULL << 63, UINT64_MAX, UINT64_MAX - 1};
    return static_cast<Number>(below(random, 8) == 0 ? random() : numbers[below(random, std::size(numbers))]);
}

uint8_t some_kind(Random &random) {
    static constexpr uint8_t first[] = {TRACE_COMMUNICATOR, TRACE_SEND, TRACE_WAIT, TRACE_BARRIER,
                                        TRACE_WINDOW};
    static constexpr uint8_t count[] = {3, 19, 4, 23, 4};
    const auto group = below(random, std::size(first) + 1);
    if (group == std::size(first))
        return static_cast<uint8_t>(random());
    return static_cast<uint8_t>(first[group] + below(random, count[group]));
}

void change_record(Random &random, EditableTrace::Slot &slot, size_t ranks) {
    trace_record record;
    std::memcpy(&record, slot.data(), sizeof record);
    switch (below(random, 8)) {
    case 0:
        record.kind = some_kind(random);
        break;
    case 1:
        record.flags ^= static_cast<uint8_t>(1U << below(random, 8));
        break;
    case 2:
        record.comm =
            below(random, 2) == 0 ? static_cast<uint16_t>(below(random, 4)) : tried<uint16_t>(random);
        break;
    case 3:
        record.peer = below(random, 4) == 0 ? tried<int32_t>(random)
                                            : static_cast<int32_t>(below(random, ranks + 4)) - 2;
        break;
    case 4:
        record.tag = below(random, 2) == 0 ? static_cast<int32_t>(below(random, 3)) : tried<int32_t>(random);
        break;
    case 5:
        record.request =
            below(random, 2) == 0 ? static_cast<uint32_t>(below(random, 10)) : tried<uint32_t>(random);
        break;
    case 6:
        record.bytes = tried<uint64_t>(random);
        break;
    default:
        record.compute_ns = tried<uint32_t>(random);
    }
    std::memcpy(slot.data(), &record, sizeof record);
}

void change_slots(Random &random, std::vector<EditableTrace::Slot> &slots, size_t ranks) {
    const size_t place = below(random, slots.size() + 1), other = below(random, slots.size() + 1);
    const auto at = [&slots](size_t where) { return slots.begin() + static_cast<std::ptrdiff_t>(where); };
    if (slots.empty() || below(random, 8) == 0)
        slots.insert(at(place), EditableTrace::Slot{});
    else if (place == slots.size() || other == slots.size())
        slots.pop_back();
    else
        switch (below(random, 8)) {
        case 0:
            slots.erase(at(place));
            return;
        case 1:
            std::swap(slots[place], slots[other]);
            return;
        case 2:
            slots.insert(at(place), EditableTrace::Slot(slots[other]));
            return;
        case 3: { // the number of bytes that follow, if it is a payload
            const auto bytes = tried<uint64_t>(random);
            std::memcpy(slots[place].data(), &bytes, sizeof bytes);
            return;
        }
        default:
            break;
        }
    if (!slots.empty())
        change_record(random, slots[std::min(place, slots.size() - 1)], ranks);
}

// Whether the headers keep what they say, even if it is wrong.
bool change(Random &random, EditableTrace &trace) {
    const size_t rank = below(random, trace.streams.size());
    auto &[header, slots] = trace.streams[rank];
    switch (below(random, 16)) {
    case 0:
        header.slots = tried<uint64_t>(random);
        return true;
    case 1:
        header.rank = tried<int32_t>(random);
        return true;
    case 2:
        header.unsound ^= uint64_t{1} << below(random, 8);
        return false;
    case 3:
        if (trace.streams.size() > 1)
            trace.streams.erase(trace.streams.begin() + static_cast<std::ptrdiff_t>(rank));
        return false;
    case 4:
        trace.streams.push_back(trace.streams[rank]);
        return false;
    default:
        change_slots(random, slots, trace.streams.size());
        return false;
    }
}

std::vector<uint8_t> fresh(Random &random) {
    const auto made = random_program(random, static_cast<uint32_t>(2 + below(random, 6))).bytes();
    std::vector<uint8_t> bytes(made.size());
    std::memcpy(bytes.data(), made.data(), made.size());
    return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Asked asked{};
    if (size < sizeof asked)
        return 0;
    std::memcpy(&asked, data, sizeof asked);
    const std::span bytes(reinterpret_cast<const std::byte *>(data) + sizeof asked, size - sizeof asked);
    try {
        Trace trace(bytes, "fuzzed");
        const Plan made = plan(trace, options(asked, trace.ranks()));
        evaluate(made, networks(asked));
    } catch (const InputError &) { // that is what is wanted
    }
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    Random random(seed);
    Asked asked{};
    const bool is_begun = size >= sizeof asked;
    if (is_begun)
        std::memcpy(&asked, data, sizeof asked);
    auto trace = is_begun ? EditableTrace::read({data + sizeof asked, size - sizeof asked}) : std::nullopt;
    const auto way = below(random, 16);
    if (trace && way == 0)
        return LLVMFuzzerMutate(data, size, most);
    std::vector<uint8_t> bytes;
    if (!trace || trace->streams.empty() || way == 1) {
        bytes = fresh(random);
    } else {
        bool keeps = false;
        for (uint64_t changes = 1 + below(random, 4); changes > 0 && !trace->streams.empty(); changes--)
            keeps |= change(random, *trace);
        bytes = trace->written(keeps);
    }
    if (below(random, 4) == 0)
        asked = {static_cast<uint8_t>(random()), static_cast<uint8_t>(random()),
                 static_cast<uint8_t>(random()), static_cast<uint8_t>(random())};
    const size_t room = std::min(bytes.size(), most - std::min(most, sizeof asked));
    if (most < sizeof asked)
        return 0;
    std::memcpy(data, &asked, sizeof asked);
    std::memcpy(data + sizeof asked, bytes.data(), room);
    return sizeof asked + room;
}
