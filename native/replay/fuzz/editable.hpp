// A trace that can be changed record by record: taken apart, and put together again with all that says how
// large it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "trace/format.h"

namespace wulf {

class EditableTrace {
  public:
    using Slot = std::array<std::byte, TRACE_SLOT_BYTES>;
    struct Stream {
        trace_header header;
        std::vector<Slot> slots;
    };
    std::vector<Stream> streams;

    // Nothing where it is no trace, or one whose parts are not where it says.
    static std::optional<EditableTrace> read(std::span<const uint8_t> bytes) {
        trace_container container{};
        if (bytes.size() < sizeof container)
            return std::nullopt;
        std::memcpy(&container, bytes.data(), sizeof container);
        if (container.ranks > (bytes.size() - sizeof container) / sizeof(trace_part))
            return std::nullopt;
        EditableTrace found;
        for (uint32_t rank = 0; rank < container.ranks; rank++) {
            trace_part part{};
            std::memcpy(&part, bytes.data() + sizeof container + rank * sizeof part, sizeof part);
            if (part.offset > bytes.size() || part.bytes > bytes.size() - part.offset ||
                part.bytes < TRACE_HEADER_BYTES)
                return std::nullopt;
            Stream stream{};
            std::memcpy(&stream.header, bytes.data() + part.offset, sizeof stream.header);
            stream.slots.resize((part.bytes - TRACE_HEADER_BYTES) / TRACE_SLOT_BYTES);
            if (!stream.slots.empty())
                std::memcpy(stream.slots.data(), bytes.data() + part.offset + TRACE_HEADER_BYTES,
                            stream.slots.size() * TRACE_SLOT_BYTES);
            found.streams.push_back(std::move(stream));
        }
        return found;
    }

    // Numbers of slots and ranks are those that there are; where one says another, it stays so with `keeps`.
    [[nodiscard]] std::vector<uint8_t> written(bool keeps) const {
        trace_container container{};
        std::memcpy(container.magic, TRACE_CONTAINER_MAGIC, sizeof container.magic);
        container.version = TRACE_VERSION;
        container.ranks = static_cast<uint32_t>(streams.size());
        std::vector<uint8_t> bytes(sizeof container + streams.size() * sizeof(trace_part));
        for (size_t rank = 0; rank < streams.size(); rank++) {
            const auto &[said, slots] = streams[rank];
            trace_header header = said;
            if (!keeps) {
                header.rank = static_cast<int32_t>(rank);
                header.ranks = static_cast<int32_t>(streams.size());
                header.slots = slots.size();
            }
            const trace_part part{bytes.size(), TRACE_HEADER_BYTES + slots.size() * TRACE_SLOT_BYTES};
            std::memcpy(bytes.data() + sizeof container + rank * sizeof part, &part, sizeof part);
            bytes.resize(part.offset + part.bytes);
            std::memcpy(bytes.data() + part.offset, &header, sizeof header);
            if (!slots.empty())
                std::memcpy(bytes.data() + part.offset + TRACE_HEADER_BYTES, slots.data(),
                            slots.size() * TRACE_SLOT_BYTES);
        }
        container.note_offset = bytes.size();
        std::memcpy(bytes.data(), &container, sizeof container);
        return bytes;
    }
};

} // namespace wulf
