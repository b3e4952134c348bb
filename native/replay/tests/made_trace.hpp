// Traces that tests write record by record.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "trace/format.h"

namespace wulf {

class MadeTrace {
  public:
    explicit MadeTrace(uint32_t ranks) : streams_(ranks), unsound_(ranks) {}

    // What one call left; -1 and such where a call has none.
    struct Call {
        trace_kind kind;
        int32_t peer = TRACE_NOBODY;
        uint64_t bytes = 0;
        int32_t tag = 0;
        uint32_t request = 0;
        uint16_t comm = TRACE_WORLD;
        uint8_t flags = 0;
        uint64_t compute_ns = 0;
    };

    void add(size_t rank, const Call &call, const std::vector<uint64_t> &sizes = {}) {
        trace_record record{};
        record.kind = static_cast<uint8_t>(call.kind);
        record.flags = call.flags;
        record.comm = call.comm;
        record.peer = call.peer;
        record.tag = call.tag;
        record.request = call.request;
        record.bytes = call.bytes;
        if (call.compute_ns > UINT32_MAX) {
            trace_record times{};
            times.kind = TRACE_TIME;
            times.flags = TRACE_PAYLOAD;
            times.bytes = call.compute_ns;
            put(rank, &times, sizeof times);
            payload(rank, std::vector<uint64_t>{0});
        } else {
            record.compute_ns = static_cast<uint32_t>(call.compute_ns);
        }
        if (!sizes.empty())
            record.flags |= TRACE_PAYLOAD;
        put(rank, &record, sizeof record);
        if (!sizes.empty())
            payload(rank, sizes);
    }

    void communicator(size_t rank, uint16_t number, const std::vector<int32_t> &members, int32_t own,
                      const std::vector<int32_t> &sources = {}, const std::vector<int32_t> &targets = {}) {
        trace_record record{};
        record.kind = TRACE_COMMUNICATOR;
        record.flags = TRACE_PAYLOAD;
        record.comm = number;
        put(rank, &record, sizeof record);
        trace_communicator head{};
        head.members = static_cast<uint32_t>(members.size());
        head.sources = static_cast<uint32_t>(sources.size());
        head.targets = static_cast<uint32_t>(targets.size());
        head.rank = own;
        std::vector<int32_t> numbers(sizeof head / sizeof(int32_t));
        std::memcpy(numbers.data(), &head, sizeof head);
        for (const auto *of : {&members, &sources, &targets})
            numbers.insert(numbers.end(), of->begin(), of->end());
        payload(rank, numbers);
    }

    std::string library; // as it calls itself

    void is_unsound(size_t rank, trace_unsound why) { unsound_[rank] |= uint64_t{1} << why; }

    [[nodiscard]] std::vector<std::byte> bytes() const {
        const auto ranks = static_cast<uint32_t>(streams_.size());
        trace_container container{};
        std::memcpy(container.magic, TRACE_CONTAINER_MAGIC, sizeof container.magic);
        container.version = TRACE_VERSION;
        container.ranks = ranks;
        std::vector<std::byte> whole(sizeof container + ranks * sizeof(trace_part));
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const trace_part part{whole.size(), TRACE_HEADER_BYTES + streams_[rank].size()};
            std::memcpy(whole.data() + sizeof container + rank * sizeof part, &part, sizeof part);
            trace_header header{};
            std::memcpy(header.magic, TRACE_STREAM_MAGIC, sizeof header.magic);
            header.version = TRACE_VERSION;
            header.header_bytes = TRACE_HEADER_BYTES;
            header.slot_bytes = TRACE_SLOT_BYTES;
            header.rank = static_cast<int32_t>(rank);
            header.ranks = static_cast<int32_t>(ranks);
            header.state = TRACE_FINISHED;
            header.slots = streams_[rank].size() / TRACE_SLOT_BYTES;
            header.unsound = unsound_[rank];
            library.copy(header.library, sizeof header.library - 1);
            whole.resize(part.offset + TRACE_HEADER_BYTES);
            std::memcpy(whole.data() + part.offset, &header, sizeof header);
            whole.insert(whole.end(), streams_[rank].begin(), streams_[rank].end());
        }
        container.note_offset = whole.size();
        std::memcpy(whole.data(), &container, sizeof container);
        return whole;
    }

  private:
    void put(size_t rank, const void *data, size_t bytes) {
        const auto *from = static_cast<const std::byte *>(data);
        streams_[rank].insert(streams_[rank].end(), from, from + bytes);
    }

    template <typename Number> void payload(size_t rank, const std::vector<Number> &numbers) {
        const uint64_t bytes = numbers.size() * sizeof(Number);
        put(rank, &bytes, sizeof bytes);
        put(rank, numbers.data(), bytes);
        auto &stream = streams_[rank];
        stream.resize((stream.size() + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES);
    }

    std::vector<std::vector<std::byte>> streams_;
    std::vector<uint64_t> unsound_;
};

} // namespace wulf
