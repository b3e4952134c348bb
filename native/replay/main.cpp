// What a traced program takes on networks. Prints JSON Lines; see docs/protocol.md.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <unistd.h>

extern "C" {
#include "core/failure.h"
#include "core/record.h"
}
#include "replay/curve.hpp"

namespace {

using namespace wulf;

constexpr const char *USAGE =
    "usage: wulf-replay TRACE NETWORKS [--nodes FILE] [--rules FILE] [--curve LOW_NS:HIGH_NS] [--path]\n"
    "\n"
    "Say what the program of a trace takes on each of the networks of a file, and why.\n"
    "\n"
    "  --nodes FILE    on which node each rank is: a number for each, in order; else each is on its own\n"
    "  --rules FILE    the library's algorithms: COLLECTIVE FROM_RANKS FROM_BYTES ALGORITHM [SEGMENT_BYTES] "
    "a line\n"
    "  --curve LOW:HIGH  the time as a function of the latency between nodes, for the first network\n"
    "  --path          what the longest path goes through, by call, way and size, for the first network\n";

struct Arguments {
    std::string trace, networks, nodes, rules;
    std::optional<std::pair<double, double>> curve;
    bool path = false;
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

// Nothing where they are wrong.
std::optional<Arguments> arguments_of(int count, char **words) {
    Arguments found;
    std::map<std::string, std::string> values;
    std::vector<std::string> files;
    for (int place = 1; place < count; place++) {
        const std::string word = words[place];
        if (word == "--path")
            found.path = true;
        else if ((word == "--nodes" || word == "--rules" || word == "--curve") && place + 1 < count)
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
    if (const auto &curve = values["--curve"]; !curve.empty()) {
        const auto colon = curve.find(':');
        if (colon == std::string::npos)
            return std::nullopt;
        found.curve = {number(curve.substr(0, colon)), number(curve.substr(colon + 1))};
        if (found.curve->first >= found.curve->second)
            throw InputError("--curve " + curve + ": the first latency must be below the second");
    }
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

trace_kind collective_named(const std::string &name) {
    for (int kind = TRACE_BARRIER; kind <= TRACE_MAKE_COMMUNICATOR; kind++)
        if (name == kind_name(static_cast<trace_kind>(kind)))
            return static_cast<trace_kind>(kind);
    throw InputError("'" + name + "' is no collective");
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
        } catch (const InputError &error) {
            throw InputError(where + error.what());
        }
        if (!(words >> rule.from_ranks >> rule.from_bytes >> rule.algorithm))
            throw InputError(where + "COLLECTIVE FROM_RANKS FROM_BYTES ALGORITHM [SEGMENT_BYTES] is wanted");
        words >> rule.segment_bytes;
        const auto &known = algorithms(rule.kind);
        if (std::find(known.begin(), known.end(), rule.algorithm) == known.end())
            throw InputError(where + "'" + rule.algorithm + "' is no algorithm of " + name);
        rules.push_back(rule);
    }
    return rules;
}

// Messages up to that size are eager on all networks, wherever they go.
uint64_t surely_eager(const std::vector<Network> &networks) {
    uint64_t least = UINT64_MAX;
    for (const auto &network : networks)
        for (const auto &link : network.links)
            least = std::min(least, link.eager_bytes);
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
    void write() {
        record_close(&record_, '}');
        if (record_write(&record_, STDOUT_FILENO) != 0)
            throw InputError(std::string("the result cannot be written: ") + std::strerror(errno));
    }

  private:
    struct record record_ {};
};

void print_plan(const Trace &trace, const Plan &plan) {
    Line line("plan");
    line.count("ranks", plan.ranks).count("records", trace.slots()).count("operations", plan.operations);
    line.count("steps", plan.steps.size()).count("messages_at_once", plan.slots);
    line.count("buffered", plan.buffered).count("largest_buffered_bytes", plan.largest_buffered).write();
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
    std::map<std::tuple<int, uint32_t, uint64_t>, uint64_t> latencies; // call, rank, bytes
    for (const auto &hop : hops) {
        if (!hop.is_latency)
            continue;
        const auto &step = plan.steps[hop.step];
        latencies[{step.call(), step.rank(), plan.sizes[step.size].bytes}]++;
    }
    for (const auto &[key, count] : latencies) {
        const auto &[call, rank, bytes] = key;
        ::Line line("hops");
        line.text("call", kind_name(static_cast<trace_kind>(call)))
            .count("from_rank", rank)
            .count("bytes", bytes);
        line.count("latencies", count).write();
    }
}

void answer(const Arguments &arguments) {
    auto file = opened(arguments.networks);
    const auto networks = read_networks(file, arguments.networks);
    const MappedFile bytes(arguments.trace);
    Trace trace(bytes.bytes(), arguments.trace);
    PlanOptions options;
    options.surely_eager = surely_eager(networks);
    if (!arguments.nodes.empty())
        options.nodes = read_nodes(arguments.nodes);
    if (!arguments.rules.empty())
        options.rules = read_rules(arguments.rules);
    const Plan made = plan(trace, options);
    print_plan(trace, made);
    if (!made.unfinished.empty())
        throw InputError(arguments.trace + ": " + made.unfinished.front() +
                         ": the trace is not that of a whole program");
    Evaluator evaluator(made);
    for (size_t first = 0; first < networks.size(); first += LANES) {
        const std::span group(networks.data() + first, std::min(LANES, networks.size() - first));
        const auto paths = evaluator.paths(group);
        for (size_t lane = 0; lane < group.size(); lane++)
            print_result(group[lane], paths[lane]);
        if (first == 0 && arguments.path)
            print_hops(made, evaluator.hops(0));
    }
    if (arguments.curve)
        print_curve(
            latency_curve(evaluator, networks.front(), arguments.curve->first, arguments.curve->second));
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
