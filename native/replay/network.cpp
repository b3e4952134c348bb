#include "replay/network.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "replay/trace.hpp"

namespace wulf {

double Pieces::at(uint64_t bytes) const {
    const auto behind =
        std::upper_bound(pieces_.begin(), pieces_.end(), bytes,
                         [](uint64_t size, const Piece &piece) { return size < piece.from_bytes; });
    if (behind == pieces_.begin())
        return 0;
    const auto &piece = *(behind - 1);
    return std::max(piece.base_ns + piece.per_byte_ns * static_cast<double>(bytes), 0.0);
}

namespace {

class Reader {
  public:
    Reader(std::istream &input, std::string name) : input_(input), name_(std::move(name)) {}

    std::vector<Network> networks() {
        for (std::string line; std::getline(input_, line);) {
            number_++;
            std::istringstream words(line);
            std::string first;
            if (words >> first && first[0] != '#')
                statement(first, words);
        }
        if (found_.empty())
            fail("no network");
        return std::move(found_);
    }

  private:
    [[noreturn]] void fail(const std::string &what) const {
        throw InputError(name_ + ":" + std::to_string(number_) + ": " + what);
    }

    double number(std::istringstream &words, const char *what) const {
        double value = 0;
        if (!(words >> value) || !std::isfinite(value) || value < 0)
            fail(std::string(what) + ": a number from 0 on is missing");
        return value;
    }

    Link &link(std::istringstream &words) {
        std::string where;
        words >> where;
        if (where != "between" && where != "within")
            fail("'between' or 'within' (nodes) is missing");
        return found_.back().links[where == "within" ? WITHIN_NODE : BETWEEN_NODES];
    }

    Link &between(std::istringstream &words) {
        Link &found = link(words);
        if (&found != &found_.back().links[BETWEEN_NODES])
            fail("no port is within a node: 'between' is missing");
        return found;
    }

    void piece(Pieces &pieces, std::istringstream &words) const {
        const double from = number(words, "bytes");
        double base = 0; // a line through points may begin below zero, at a size that no message of it has
        if (!(words >> base) || !std::isfinite(base))
            fail("time: a number is missing");
        const double each = number(words, "time per byte");
        const auto bytes = static_cast<uint64_t>(from);
        if (base + each * from < -1e-6 * std::abs(base))
            fail("less than no time at " + std::to_string(bytes) + " bytes");
        if (pieces.empty() ? bytes != 0 : bytes <= pieces.last())
            fail("pieces begin at 0 bytes and ascend");
        pieces.add({bytes, base, each});
    }

    void statement(const std::string &what, std::istringstream &words) {
        if (what == "network") {
            found_.emplace_back();
            if (!(words >> found_.back().name))
                fail("a network without a name");
        } else if (found_.empty()) {
            fail("'network NAME' must come first");
        } else if (what == "latency") {
            auto &of = link(words);
            of.latency_ns = number(words, "latency");
        } else if (what == "eager") {
            auto &of = link(words);
            of.eager_bytes = static_cast<uint64_t>(number(words, "bytes"));
        } else if (what == "send") {
            piece(link(words).send, words);
        } else if (what == "receive") {
            piece(link(words).receive, words);
        } else if (what == "busy") {
            piece(link(words).busy, words);
        } else if (what == "after") {
            piece(link(words).after, words);
        } else if (what == "wire") {
            piece(link(words).wire, words);
        } else if (what == "burst") {
            piece(link(words).burst, words);
        } else if (what == "depth") {
            auto &of = link(words);
            of.depth_ns = number(words, "depth");
        } else if (what == "buffer") {
            auto &of = between(words);
            of.buffer_bytes = number(words, "bytes");
        } else if (what == "timeout") {
            auto &of = between(words);
            of.timeout_ns = number(words, "time");
        } else if (what == "answering") {
            auto &of = link(words);
            of.answering_ns = number(words, "time");
        } else if (what == "answered") {
            auto &of = link(words);
            of.answered_ns = number(words, "time");
        } else if (what == "reduce") {
            found_.back().reduce_per_byte_ns = number(words, "time per byte");
        } else if (what == "compute") {
            found_.back().compute = number(words, "factor");
        } else if (what == "making") {
            found_.back().making_ns = number(words, "time");
        } else if (what == "connecting") {
            found_.back().connecting_ns = number(words, "time");
        } else {
            fail("'" + what +
                 "' is none of network, latency, eager, send, receive, busy, after, wire, burst, depth, "
                 "buffer, "
                 "timeout, "
                 "answering, answered, reduce, compute, making, connecting");
        }
        std::string rest;
        if (words >> rest)
            fail("'" + rest + "' is too much");
    }

    std::istream &input_;
    std::string name_;
    size_t number_ = 0;
    std::vector<Network> found_;
};

} // namespace

std::vector<Network> read_networks(std::istream &input, const std::string &name) {
    return Reader(input, name).networks();
}

} // namespace wulf
