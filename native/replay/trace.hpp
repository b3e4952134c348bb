// Reads a trace: checks all that it says before anything is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

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

// A communicator, the same for all its members.
struct Communicator {
    std::vector<int32_t> members; // ranks of the world
    bool inter = false;
};

// One rank's view of a communicator.
struct LocalCommunicator {
    static constexpr uint32_t NONE = UINT32_MAX;
    uint32_t global = NONE; // which of Trace::communicators
    int32_t rank = 0;
    std::vector<int32_t> sources{}, targets{}; // neighbours, as ranks of the communicator
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
    // False at the end. Throws InputError where a record is none.
    bool next(Event &event);
    void rewind() { place_ = 0; }
    // Where the last event that `next` gave begins, as a number of slots.
    [[nodiscard]] uint64_t place() const { return begin_; }
    [[noreturn]] void fail(const std::string &what) const;

  private:
    void payload_of(Event &event);

    std::span<const std::byte> slots_;
    std::string name_;
    trace_header header_{};
    uint64_t place_ = 0, begin_ = 0; // [slots]
};

class Trace {
  public:
    // Throws InputError.
    Trace(std::span<const std::byte> bytes, const std::string &name);

    [[nodiscard]] size_t ranks() const { return streams_.size(); }
    [[nodiscard]] Stream &stream(size_t rank) { return streams_[rank]; }
    [[nodiscard]] const std::vector<Communicator> &communicators() const { return communicators_; }
    [[nodiscard]] const LocalCommunicator &local(size_t rank, uint16_t number) const;
    [[nodiscard]] std::string_view note() const { return note_; }
    // All records of all ranks, at most.
    [[nodiscard]] uint64_t slots() const;

  private:
    void learn_communicators(size_t rank);
    uint32_t global(std::vector<int32_t> members, bool inter, std::map<std::vector<int32_t>, uint32_t> &made);

    std::string name_;
    std::vector<Stream> streams_;
    std::vector<Communicator> communicators_;
    std::map<std::pair<std::vector<int32_t>, uint32_t>, uint32_t> known_;
    std::vector<std::vector<LocalCommunicator>> locals_; // [rank][number]
    std::string_view note_;
};

} // namespace wulf
