// What a network is to a program: LogGP with pieces by size, within a node and between nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <istream>
#include <limits>
#include <string>
#include <vector>

namespace wulf {

// From that many bytes on, something takes base + per_byte * bytes [ns].
struct Piece {
    uint64_t from_bytes = 0;
    double base_ns = 0, per_byte_ns = 0;
};

// A function of the size of a message.
class Pieces {
  public:
    // In ascending order of from_bytes; without any it is zero.
    void add(const Piece &piece) { pieces_.push_back(piece); }
    [[nodiscard]] bool empty() const { return pieces_.empty(); }
    [[nodiscard]] uint64_t last() const { return pieces_.back().from_bytes; }
    [[nodiscard]] double at(uint64_t bytes) const;
    // Of large messages.
    [[nodiscard]] double per_byte_ns() const { return pieces_.empty() ? 0 : pieces_.back().per_byte_ns; }

  private:
    std::vector<Piece> pieces_;
};

enum Locality : uint32_t { BETWEEN_NODES = 0, WITHIN_NODE = 1, LOCALITIES = 2 };

struct Link {
    double latency_ns = 0;
    // Messages up to that size are sent at once, larger ones when the receiver is ready.
    uint64_t eager_bytes = UINT64_MAX;
    Pieces send, receive; // the CPU's time at either end
    // How much more of the receiver's a message takes that has come while it did something else: interrupts
    // took it from that.
    Pieces busy;
    Pieces after; // the sender's CPU when the message has left: its receiver does not wait for that
    Pieces wire;  // for which the network interface is taken
    // A shaped interface lets a burst through faster than its rate: a message takes that long if the
    // interface has rested, and `wire` in the long run. Ahead of that rate is the interface by `depth_ns` at
    // most.
    Pieces burst;
    double depth_ns = 0;
    // What the port to a receiver keeps while it is busy (engine B only, des.hpp), and after which time the
    // end of a message that it had no room for is sent again.
    double buffer_bytes = std::numeric_limits<double>::infinity(), timeout_ns = 200e6;
    // A small message that is always answered (MPI_Ssend): it is through at its receiver so much later, and
    // its sender hears of it so much later still, without the answer's latency.
    double answering_ns = 0, answered_ns = 0;

    [[nodiscard]] bool has_bursts() const { return depth_ns > 0; }
    // Of a message that finds nothing before it.
    [[nodiscard]] double first_ns(uint64_t bytes) const {
        const double whole = wire.at(bytes);
        return has_bursts() ? std::max(burst.at(bytes), whole - depth_ns) : whole;
    }
    // For how long a full buffer keeps the port busy.
    [[nodiscard]] double buffer_ns() const {
        const double each_ns = (has_bursts() ? burst : wire).per_byte_ns();
        return each_ns > 0 ? buffer_bytes * each_ns : std::numeric_limits<double>::infinity();
    }
};

struct Network {
    std::string name;
    std::array<Link, LOCALITIES> links;
    double reduce_per_byte_ns = 0; // of adding up what came
    double compute = 1;            // times what the program computes between calls
    // What no message carries: what a rank itself does when a communicator is made, and for how long its
    // first message to another node waits for a connection.
    double making_ns = 0, connecting_ns = 0;
};

// Read networks, a line each word of them:
//
//     network NAME
//     latency between|within NS
//     eager between|within BYTES
//     send|receive|busy|after|wire|burst between|within FROM_BYTES BASE_NS NS_PER_BYTE
//     depth|answering|answered between|within NS
//     buffer between BYTES
//     timeout between NS
//     reduce NS_PER_BYTE
//     compute FACTOR
//     making NS
//     connecting NS
//
// Throws InputError with the line.
std::vector<Network> read_networks(std::istream &input, const std::string &name);

} // namespace wulf
