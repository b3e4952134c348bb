#include "replay/des_answer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

extern "C" {
#include "core/record.h"
}
#include "replay/des.hpp"

namespace wulf {

namespace {

class Record {
  public:
    explicit Record(const char *type) { record_begin(&record_, type); }
    ~Record() { record_free(&record_); }
    Record(const Record &) = delete;
    Record &operator=(const Record &) = delete;
    operator struct record *() { return &record_; }

    void write() {
        record_close(&record_, '}');
        if (record_write(&record_, STDOUT_FILENO) != 0)
            throw InputError(std::string("the result cannot be written: ") + std::strerror(errno));
    }

  private:
    struct record record_{};
};

// On which nodes a program's ranks are, of all that were given.
std::vector<uint32_t> nodes_of(const EventsAsked &asked, size_t first_rank, size_t ranks) {
    if (asked.nodes.empty())
        return {};
    if (first_rank + ranks > asked.nodes.size())
        throw InputError("nodes are given for " + std::to_string(asked.nodes.size()) +
                         " ranks; the programs have more");
    const auto first = asked.nodes.begin() + static_cast<std::ptrdiff_t>(first_rank);
    return {first, first + static_cast<std::ptrdiff_t>(ranks)};
}

void add_beside(Program &program, const std::string &path, const PlanOptions &options,
                const EventsAsked &asked) {
    const MappedFile bytes(path);
    Trace trace(bytes.bytes(), path);
    PlanOptions own = options;
    own.nodes = nodes_of(asked, program.ranks(), trace.ranks());
    try {
        const Plan made = plan(trace, own);
        require_whole(path, made);
        append(program, path, made, trace, own.nodes);
    } catch (const InputError &error) {
        // What cannot be replayed soundly is said of a rank; here there are several programs.
        const std::string said = error.what();
        throw InputError(said.find(path) == std::string::npos ? path + ": " + said : said);
    }
}

Topology topology_of(const Program &program, const EventsAsked &asked) {
    if (asked.topology.empty())
        return {};
    std::ifstream file(asked.topology);
    if (!file)
        throw InputError(asked.topology + ": " + std::strerror(errno));
    const uint32_t nodes = *std::max_element(program.nodes.begin(), program.nodes.end()) + 1;
    return read_topology(file, asked.topology, nodes);
}

void print_programs(const Program &program) {
    for (size_t number = 0; number < program.parts.size(); number++) {
        const auto &part = program.parts[number];
        Record line("program");
        record_pair_unsigned(line, "program", number);
        record_pair_string(line, "trace", part.name.c_str());
        record_pair_unsigned(line, "ranks", part.ranks);
        record_pair_unsigned(line, "messages", part.messages);
        record_pair_unsigned(line, "wild", part.wild);
        record_pair_unsigned(line, "chosen", part.chosen);
        line.write();
    }
}

void print_outcome(const Network &network, const Outcome &found) {
    Record line("contended");
    record_pair_string(line, "network", network.name.c_str());
    record_key(line, "times_ns");
    record_open(line, '[');
    for (const double time : found.part_ns)
        record_double(line, time, 3);
    record_close(line, ']');
    record_pair_unsigned(line, "events", found.events);
    record_pair_unsigned(line, "moved", found.moved);
    record_pair_unsigned(line, "timeouts", found.timeouts);
    record_pair_bool(line, "as_recorded", found.is_as_recorded);
    line.write();
}

} // namespace

void require_whole(const std::string &trace, const Plan &plan) {
    if (!plan.unfinished.empty())
        throw InputError(trace + ": " + plan.unfinished.front() +
                         ": the trace is not that of a whole program");
}

void print_events(Trace &trace, const std::string &name, const Plan &plan, const PlanOptions &options,
                  std::span<const Network> networks, const EventsAsked &asked) {
    Program program;
    append(program, name, plan, trace, options.nodes);
    for (const auto &path : asked.beside)
        add_beside(program, path, options, asked);
    const Topology topology = topology_of(program, asked);
    print_programs(program);
    Simulator simulator(program, topology);
    for (const auto &network : networks)
        print_outcome(network, simulator.run(network, asked.seed));
}

} // namespace wulf
