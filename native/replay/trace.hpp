// Reads a trace: checks all that it says before anything is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/communicators.hpp"
#include "trace/format.h"

namespace wulf {

// What is wrong with a file that was given, in words for a person.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a kind of record is called, in lower case and without the prefix; empty for none.
const char *kind_name(trace_kind kind);

// A file in memory, read only.
class MappedFile {
  public:
    explicit MappedFile(const std::string &path);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};

// A record with what belongs to it.
struct Event {
    trace_record record{};
    uint64_t compute_ns = 0, call_ns = 0;
    std::span<const std::byte> payload;

    [[nodiscard]] uint64_t size_at(size_t place) const; // of a payload of uint64_t; 0 behind its end
    [[nodiscard]] size_t sizes() const { return payload.size() / sizeof(uint64_t); }
};

// One rank's records, in order; records that describe communicators and times are taken in on the way.
class Stream {
  public:
    Stream(std::span<const std::byte> bytes, std::string name);

    [[nodiscard]] const trace_header &header() const { return header_; }
    // Of threads that call MPI; all zero where they were not counted.
    [[nodiscard]] const trace_threads &threads() const { return threads_; }
    // False at the end. Throws InputError where a record is none.
    bool next(Event &event) {
        if (place_ == slots_.size() / TRACE_SLOT_BYTES)
            return false;
        begin_ = place_;
        const auto *const here = slots_.data() + place_++ * TRACE_SLOT_BYTES;
        // When ranks take turns the machine does not see that a stream is read in order. An address behind
        // its end does no harm.
        __builtin_prefetch(here + AHEAD_BYTES);
        std::memcpy(&event.record, here, sizeof event.record);
        event.compute_ns = event.record.compute_ns;
        event.call_ns = event.record.call_ns;
        event.payload = {};
        const bool is_whole = !(event.record.flags & TRACE_PAYLOAD) && event.record.kind != TRACE_TIME;
        return is_whole || next_with_more(event);
    }
    void rewind() { place_ = 0; }
    // Where the last event that `next` gave begins, as a number of slots.
    [[nodiscard]] uint64_t place() const { return begin_; }
    void prefetch() const {
        const auto *const here = slots_.data() + place_ * TRACE_SLOT_BYTES;
        for (size_t ahead = 0; ahead < 512; ahead += 64)
            __builtin_prefetch(here + ahead);
    }
    [[noreturn]] void fail(const std::string &what) const;

  private:
    bool next_with_more(Event &event);
    void payload_of(Event &event);

    static constexpr size_t AHEAD_BYTES = 768;

    std::span<const std::byte> slots_;
    uint64_t place_ = 0, begin_ = 0; // [slots]
    std::string name_;
    trace_header header_{};
    trace_threads threads_{};
};

// Receives of which only the end says who sent what they got: those from anybody; all, where some were taken
// back.
enum class LateReceives : uint8_t { NONE, WILD, ALL };

class Trace {
  public:
    // Throws InputError.
    Trace(std::span<const std::byte> bytes, const std::string &name);

    [[nodiscard]] size_t ranks() const { return streams_.size(); }
    // The MPI library, as it calls itself.
    [[nodiscard]] std::string_view library() const { return streams_[0].header().library; }
    [[nodiscard]] Stream &stream(size_t rank) { return streams_[rank]; }
    [[nodiscard]] const Stream &stream(size_t rank) const { return streams_[rank]; }
    [[nodiscard]] const std::vector<Communicator> &communicators() const {
        return communicators_.communicators();
    }
    [[nodiscard]] const LocalCommunicator &local(size_t rank, uint16_t number) const {
        const auto &locals = locals_[rank];
        if (number >= locals.size() || locals[number].global == LocalCommunicator::NONE)
            streams_[rank].fail("a communicator that was never made: number " + std::to_string(number));
        return locals[number];
    }
    // Whether the first communicator that a rank made says who is beside whom.
    [[nodiscard]] bool begins_with_neighbours(size_t rank) const {
        const auto &locals = locals_[rank];
        const size_t first = TRACE_SELF + 1;
        return locals.size() > first && !(locals[first].sources.empty() && locals[first].targets.empty());
    }
    [[nodiscard]] std::string_view note() const { return note_; }
    // All records of all ranks, at most.
    [[nodiscard]] uint64_t slots() const;
    // Records that send or receive a message, those of collectives not among them.
    [[nodiscard]] uint64_t messages() const { return messages_; }
    // Of which receives of a rank only the end says who sent what they got.
    [[nodiscard]] LateReceives late_receives(size_t rank) const { return late_[rank]; }
    // Whether any message is sent by agreement whatever its size (MPI_Ssend and the like).
    [[nodiscard]] bool has_synchronous() const { return has_synchronous_; }

  private:
    void scan(size_t rank);
    void learn(size_t rank, const Event &event, CommunicatorsOfRank &made);

    std::string name_;
    std::vector<Stream> streams_;
    Communicators communicators_;
    std::vector<std::vector<LocalCommunicator>> locals_; // [rank][number]
    std::vector<LateReceives> late_;
    uint64_t messages_ = 0;
    bool has_synchronous_ = false;
    std::string_view note_;
};

} // namespace wulf
