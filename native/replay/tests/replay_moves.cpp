// What ranks send in collectives: reads lines COLLECTIVE BEGUN ROOT BYTES [SIZES...] and prints for each of
// them FROM>TO:MESSAGES:BYTES of all pairs. Arguments: the library's name, and how many ranks there are.
#include <iostream>
#include <map>
#include <sstream>
#include <utility>

#include "replay/openmpi.hpp"

using namespace wulf;

namespace {

struct Sent {
    uint64_t messages = 0, bytes = 0;
};

using Pairs = std::map<std::pair<int32_t, int32_t>, Sent>;

Pairs sent(const CollectiveRules &rules, CollectiveCall call) {
    Pairs found;
    for (call.rank = 0; call.rank < call.ranks; call.rank++) {
        std::vector<Move> moves;
        if (call.kind == TRACE_SCATTERV || call.kind == TRACE_GATHERV)
            call.bytes = call.sizes.at(static_cast<size_t>(call.rank));
        expand(call, rules, moves);
        for (const auto &move : moves)
            if (move.kind == Move::SEND || move.kind == Move::BEGIN_SEND) {
                auto &pair = found[{call.rank, static_cast<int32_t>(move.peer)}];
                pair.messages++;
                pair.bytes += move.bytes;
            }
    }
    return found;
}

} // namespace

int main(int, char **words) {
    const auto &rules = rules_of(words[1]);
    const int32_t ranks = std::stoi(words[2]);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream parts(line);
        std::string name;
        CollectiveCall call{
            .kind = TRACE_BARRIER, .rank = 0, .ranks = ranks, .root = 0, .bytes = 0, .sizes = {}};
        parts >> name >> call.is_begun >> call.root >> call.bytes;
        call.kind = collective_named(name);
        for (uint64_t size = 0; parts >> size;)
            call.sizes.push_back(size);
        for (const auto &[pair, of] : sent(rules, call))
            std::cout << pair.first << '>' << pair.second << ':' << of.messages << ':' << of.bytes << ' ';
        std::cout << '\n';
    }
}
