// What a traced program takes on networks. Prints JSON Lines; see docs/protocol.md.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <unistd.h>

extern "C" {
#include "core/failure.h"
#include "core/record.h"
}
#include "replay/curve.hpp"
#include "replay/des_answer.hpp"
#include "replay/measure.hpp"
#include "replay/scenarios.hpp"
#include "replay/timeline.hpp"

namespace {

using namespace wulf;

constexpr const char *USAGE =
    "usage: wulf-replay TRACE NETWORKS [--nodes FILE] [--rules FILE] [--curve LOW_NS:HIGH_NS] [--path]\n"
    "       [--engine static|events] [--seed N] [--beside TRACE]… [--topology FILE]\n"
    "       [--timeline NETWORKS:ROWS:CELLS:NS] [--eager BYTES]\n"
    "       [--threads N] [--times ROUNDS]\n"
    "\n"
    "Say what the program of a trace takes on each of the networks of a file, and why.\n"
    "\n"
    "  --nodes FILE    on which node each rank is: a number for each, in order; else each is on its own\n"
    "  --rules FILE    the library's algorithms: COLLECTIVE FROM_RANKS FROM_BYTES ALGORITHM [SEGMENT_BYTES] "
    "a line\n"
    "  --curve LOW:HIGH  the time as a function of the latency between nodes, for the first network\n"
    "  --path          what the longest path goes through, by call, way and size, for the first network\n"
    "  --engine events  event by event: who comes first, and what ranks share, as it turns out; without it "
    "messages\n"
    "                  are in the order of the trace, and the answer is exact for that order\n"
    "  --seed N        who is first of those who come at the same time\n"
    "  --beside TRACE  a program that runs at the same time, event by event; --nodes has its ranks behind "
    "those before\n"
    "  --topology FILE  uplinks that nodes share: uplink SWITCH BYTES_PER_SECOND [ABOVE], and node NUMBER "
    "SWITCH\n"
    "  --timeline NETWORKS:ROWS:CELLS:NS  where each rank's time goes on so many networks, the first ones: "
    "of the "
    "whole run, and\n"
    "                  of NS from the middle of rank 0's steps on; ranks in so many rows at most, time in so "
    "many "
    "cells\n"
    "  --eager BYTES   the networks are part of a question: messages up to that size are eager on all of "
    "it\n"
    "  --threads N     evaluate so many groups of eight networks at the same time (default: the "
    "number\n"
    "                  of CPUs that this process may use)\n"
    "  --times ROUNDS  instead of results: how long each stage takes, so many times\n";

// What is drawn of where time goes.
struct Timelines {
    size_t networks, rows, cells;
    double for_ns; // of the part from the middle on
};

struct Arguments {
    std::string trace, networks, nodes, rules;
    std::optional<std::pair<double, double>> curve;
    std::optional<Timelines> timelines;
    uint64_t eager = UINT64_MAX;
    bool path = false;
    bool by_events = false;
    EventsAsked events;
    size_t threads = 1, rounds = 0;
};

std::ifstream opened(const std::string &path) {
    std::ifstream file(path);
    if (!file)
        throw InputError(path + ": " + std::strerror(errno));
    return file;
}

double number(const std::string &text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
        throw InputError("'" + text + "' is no number from 0 on");
    return value;
}

// Numbers with colons between.
std::vector<double> numbers(const std::string &text) {
    std::vector<double> found;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ':');)
        found.push_back(number(word));
    return found;
}

std::pair<double, double> curve_of(const std::string &text) {
    const auto ends = numbers(text);
    if (ends.size() != 2 || ends[0] >= ends[1])
        throw InputError("--curve " + text + ": LOW_NS:HIGH_NS is wanted, the smaller latency first");
    return {ends[0], ends[1]};
}

Timelines timelines_of(const std::string &text) {
    const auto found = numbers(text);
    const auto is_count = [](double value) {
        return value >= 1 && value <= 1e6 && value == std::floor(value);
    };
    if (found.size() != 4 || !std::all_of(found.begin(), found.begin() + 3, is_count) || !(found[3] > 0))
        throw InputError("--timeline " + text + ": NETWORKS:ROWS:CELLS:NS is wanted, all of them above 0");
    return {static_cast<size_t>(found[0]), static_cast<size_t>(found[1]), static_cast<size_t>(found[2]),
            found[3]};
}

// With a value each.
const std::set<std::string> OPTIONS{"--nodes",    "--rules",    "--curve", "--engine",  "--seed",
                                    "--topology", "--timeline", "--eager", "--threads", "--times"};

void take_events(Arguments &found, std::map<std::string, std::string> &values) {
    const auto &engine = values["--engine"];
    if (!engine.empty() && engine != "static" && engine != "events")
        throw InputError("--engine " + engine + ": it is static or events");
    found.by_events = engine == "events";
    found.events.topology = values["--topology"];
    if (const auto &seed = values["--seed"]; !seed.empty())
        found.events.seed = static_cast<uint64_t>(std::min(number(seed), 0x1p62));
    if (!found.by_events && (!found.events.beside.empty() || !found.events.topology.empty()))
        throw InputError("what programs share is for --engine events");
    if (found.by_events && values.contains("--times"))
        throw InputError("--times is for --engine static");
}

// A number of things from 1 on, or `usual`.
size_t whole(const std::map<std::string, std::string> &values, const char *option, size_t usual) {
    const auto found = values.find(option);
    if (found == values.end())
        return usual;
    const double value = number(found->second);
    if (value < 1 || value > 65536 || value != std::floor(value))
        throw InputError(std::string(option) + " " + found->second + ": a whole number from 1 on is wanted");
    return static_cast<size_t>(value);
}

// Nothing where they are wrong.
std::optional<Arguments> arguments_of(int count, char **words) {
    Arguments found;
    std::map<std::string, std::string> values;
    std::vector<std::string> files;
    for (int place = 1; place < count; place++) {
        const std::string word = words[place];
        if (word == "--path")
            found.path = true;
        else if (word == "--beside" && place + 1 < count)
            found.events.beside.emplace_back(words[++place]);
        else if (OPTIONS.contains(word) && place + 1 < count)
            values[word] = words[++place];
        else if (word.starts_with("--"))
            return std::nullopt;
        else
            files.push_back(word);
    }
    if (files.size() != 2)
        return std::nullopt;
    found.trace = files[0];
    found.networks = files[1];
    found.nodes = values["--nodes"];
    found.rules = values["--rules"];
    found.threads = whole(values, "--threads", std::thread::hardware_concurrency());
    found.rounds = whole(values, "--times", 0);
    take_events(found, values);
    if (const auto &curve = values["--curve"]; !curve.empty())
        found.curve = curve_of(curve);
    if (const auto &timelines = values["--timeline"]; !timelines.empty())
        found.timelines = timelines_of(timelines);
    if (const auto &eager = values["--eager"]; !eager.empty())
        found.eager = static_cast<uint64_t>(std::min(number(eager), 0x1p62));
    return found;
}

std::vector<uint32_t> read_nodes(const std::string &path) {
    auto file = opened(path);
    std::vector<uint32_t> nodes;
    for (uint32_t node = 0; file >> node;)
        nodes.push_back(node);
    if (!file.eof())
        throw InputError(path + ": number " + std::to_string(nodes.size() + 1) + " is none");
    return nodes;
}

CollectiveRules read_rules(const std::string &path) {
    auto file = opened(path);
    CollectiveRules rules;
    size_t number = 0;
    for (std::string line; std::getline(file, line);) {
        number++;
        const std::string where = path + ":" + std::to_string(number) + ": ";
        std::istringstream words(line);
        std::string name;
        if (!(words >> name) || name[0] == '#')
            continue;
        CollectiveRule rule{};
        try {
            rule.kind = collective_named(name);
            if (!(words >> rule.from_ranks >> rule.from_bytes >> rule.algorithm))
                throw InputError("COLLECTIVE FROM_RANKS FROM_BYTES ALGORITHM [SEGMENT_BYTES] is wanted");
            words >> rule.segment_bytes;
            rules.add(rule);
        } catch (const InputError &error) {
            throw InputError(where + error.what());
        }
    }
    return rules;
}

// Messages up to these sizes are eager on all networks and up to `most` bytes, by locality.
std::array<uint64_t, LOCALITIES> surely_eager(const std::vector<Network> &networks, uint64_t most) {
    std::array<uint64_t, LOCALITIES> least;
    least.fill(most);
    for (const auto &network : networks)
        for (size_t locality = 0; locality < LOCALITIES; locality++)
            least[locality] = std::min(least[locality], network.links[locality].eager_bytes);
    return least;
}

// --- what is printed
// -------------------------------------------------------------------------------------------

class Line {
  public:
    explicit Line(const char *type) { record_begin(&record_, type); }
    ~Line() { record_free(&record_); }
    Line(const Line &) = delete;
    Line &operator=(const Line &) = delete;

    Line &text(const char *key, const std::string &value) {
        record_pair_string(&record_, key, value.c_str());
        return *this;
    }
    Line &count(const char *key, uint64_t value) {
        record_pair_unsigned(&record_, key, value);
        return *this;
    }
    Line &value(const char *key, double value) {
        record_pair_double(&record_, key, value, 3);
        return *this;
    }
    Line &values(const char *key, const std::vector<double> &values) {
        record_key(&record_, key);
        record_open(&record_, '[');
        for (const double value : values)
            record_double(&record_, value, 4);
        record_close(&record_, ']');
        return *this;
    }
    void write() {
        record_close(&record_, '}');
        if (record_write(&record_, STDOUT_FILENO) != 0)
            throw InputError(std::string("the result cannot be written: ") + std::strerror(errno));
    }

  private:
    struct record record_{};
};

void print_plan(const Plan &plan) {
    Line line("plan");
    line.count("ranks", plan.ranks).count("records", plan.trace_slots).count("operations", plan.operations);
    line.count("computations", plan.computations).count("steps", plan.steps.size());
    line.count("messages_at_once", plan.slots).count("bytes", needed_bytes(plan));
    line.count("buffered", plan.buffered).count("largest_buffered_bytes", plan.largest_buffered);
    line.count("lost", plan.lost).count("lost_from", plan.lost_from).count("lost_to", plan.lost_to).write();
    for (const auto &what : plan.unfinished)
        Line("unfinished").text("what", what).write();
}

void print_result(const Network &network, const Path &path) {
    Line line("result");
    line.text("network", network.name).value("time_ns", path.time_ns(network));
    line.value("compute_ns", path.compute_ns * network.compute);
    line.value("reduce_ns", path.reduce_bytes * network.reduce_per_byte_ns);
    static const char *const keys[LOCALITIES][5] = {
        {"between_hops", "between_send_ns", "between_receive_ns", "between_wire_ns", "between_wire_bytes"},
        {"within_hops", "within_send_ns", "within_receive_ns", "within_wire_ns", "within_wire_bytes"}};
    for (size_t locality = 0; locality < LOCALITIES; locality++) {
        const auto &link = path.links[locality];
        const double values[] = {link.hops, link.send_ns, link.receive_ns, link.wire_ns, link.wire_bytes};
        for (size_t place = 0; place < std::size(values); place++)
            line.value(keys[locality][place], values[place]);
    }
    line.write();
}

void print_curve(const std::vector<wulf::Line> &curve) {
    for (const auto &one : curve)
        ::Line("line")
            .value("latency_ns", one.latency_ns)
            .value("time_ns", one.time_ns)
            .value("hops", one.hops)
            .write();
}

void print_hops(const Plan &plan, const std::vector<Hop> &hops) {
    std::map<std::tuple<int, uint32_t, uint64_t, bool>, uint64_t> latencies; // call, rank, bytes, within
    for (const auto &hop : hops) {
        if (!hop.is_latency)
            continue;
        const auto &size = plan.sizes[hop.size];
        latencies[{plan.steps[hop.step].call(), hop.rank, size.bytes, size.locality == WITHIN_NODE}]++;
    }
    for (const auto &[key, count] : latencies) {
        const auto &[call, rank, bytes, within] = key;
        ::Line line("hops");
        line.text("call", kind_name(static_cast<trace_kind>(call)))
            .count("from_rank", rank)
            .count("bytes", bytes);
        line.count("latencies", count).text("where", within ? "within" : "between").write();
    }
}

// The first networks, each over its whole run and from the middle on.
void print_timelines(const Plan &plan, const std::vector<Network> &networks, const Timelines &asked,
                     const std::vector<double> &times_ns) {
    for (size_t place = 0; place < std::min(asked.networks, networks.size()); place++) {
        TimelineView view{0, std::max(times_ns[place], 1.0), asked.rows, asked.cells};
        const auto whole = timeline(plan, networks[place], view);
        view = {whole.middle_ns, asked.for_ns, asked.rows, asked.cells};
        const auto middle = timeline(plan, networks[place], view);
        for (const auto *part : {&whole, &middle})
            for (const auto &row : part->rows) {
                ::Line line("timeline");
                line.text("network", networks[place].name).text("part", part == &whole ? "whole" : "middle");
                line.count("first_rank", row.first_rank).count("last_rank", row.last_rank);
                line.value("from_ns", part == &whole ? 0 : whole.middle_ns);
                line.value("for_ns", part == &whole ? times_ns[place] : asked.for_ns);
                line.values("computing", row.cells[COMPUTING]).values("messages", row.cells[OF_MESSAGES]);
                line.values("waiting", row.cells[WAITING]).write();
            }
    }
}

void print_static(const Plan &made, const std::vector<Network> &networks, const Arguments &arguments) {
    const auto found = evaluate_all(made, networks, arguments.threads, arguments.path);
    std::vector<double> times_ns;
    for (size_t one = 0; one < networks.size(); one++) {
        print_result(networks[one], found.paths[one]);
        times_ns.push_back(found.paths[one].time_ns(networks[one]));
    }
    print_hops(made, found.hops);
    if (arguments.curve) {
        print_curve(latency_curve(made, networks.front(), arguments.curve->first, arguments.curve->second,
                                  arguments.threads));
    }
    if (arguments.timelines)
        print_timelines(made, networks, *arguments.timelines, times_ns);
}

void print_times(const StageTimes &times, bool with_curve) {
    ::Line line("times");
    line.text("vectors", kernels().front().name).value("load_ns", times.load_ns);
    line.value("plan_ns", times.plan_ns).value("evaluate_ns", times.evaluate_ns);
    line.value("paths_ns", times.paths_ns);
    if (with_curve)
        line.value("curve_ns", times.curve_ns).count("lines", times.lines);
    line.write();
}

void answer_times(const Arguments &arguments, const PlanOptions &options,
                  const std::vector<Network> &networks) {
    for (size_t round = 0; round < arguments.rounds; round++) {
        const auto [made, times] =
            measure(arguments.trace, options, networks, arguments.curve, arguments.threads);
        if (round == 0)
            print_plan(made);
        print_times(times, arguments.curve.has_value());
    }
}

void answer_results(const Arguments &arguments, PlanOptions options, const std::vector<Network> &networks) {
    const MappedFile bytes(arguments.trace);
    Trace trace(bytes.bytes(), arguments.trace);
    EventsAsked events = arguments.events;
    events.nodes = options.nodes;
    if (!events.beside.empty() && options.nodes.size() > trace.ranks())
        options.nodes.resize(trace.ranks());
    options.keeps_records = arguments.by_events;
    const Plan made = plan(trace, options);
    print_plan(made);
    require_whole(arguments.trace, made);
    if (arguments.by_events)
        print_events(trace, arguments.trace, made, options, networks, events);
    else
        print_static(made, networks, arguments);
}

void answer(const Arguments &arguments) {
    auto file = opened(arguments.networks);
    const auto networks = read_networks(file, arguments.networks);
    PlanOptions options;
    options.surely_eager = surely_eager(networks, arguments.eager);
    if (!arguments.nodes.empty())
        options.nodes = read_nodes(arguments.nodes);
    if (!arguments.rules.empty())
        options.rules = read_rules(arguments.rules);
    if (arguments.rounds > 0)
        answer_times(arguments, options, networks);
    else
        answer_results(arguments, options, networks);
}

} // namespace

int main(int count, char **words) {
    try {
        const auto arguments = arguments_of(count, words);
        if (!arguments) {
            std::fputs(USAGE, stderr);
            return USAGE_EXIT;
        }
        answer(*arguments);
        return 0;
    } catch (const InputError &error) {
        std::fprintf(stderr, "wulf-replay: %s\n", error.what());
    } catch (const std::bad_alloc &) {
        std::fputs("wulf-replay: the memory is not enough\n", stderr);
    }
    return FAILURE_EXIT;
}
